import { BlockList, isIP } from 'node:net';

const form = /^(.*?)(?:\/(\d{1,3}))?$/;

/** Whether `text` is an IP address, or a range of them in CIDR notation. */
export function isAddressRange(text: string): boolean {
  const [, address = '', bits = '0'] = form.exec(text) ?? [];
  const version = isIP(address);
  return version !== 0 && Number(bits) <= (version === 4 ? 32 : 128);
}

/** Addresses and ranges in CIDR notation, each {@link isAddressRange}. */
export class AddressRanges {
  readonly #list = new BlockList();

  constructor(ranges: readonly string[]) {
    for (const range of ranges) {
      const [, address = '', bits] = form.exec(range) ?? [];
      const version = isIP(address) === 4 ? 'ipv4' : 'ipv6';
      if (bits === undefined) this.#list.addAddress(address, version);
      else this.#list.addSubnet(address, Number(bits), version);
    }
  }

  /** `address` may be an IPv4 address mapped to IPv6. False for text that is no address. */
  has(address: string): boolean {
    const plain = unmapped(address);
    const version = isIP(plain);
    return version !== 0 && this.#list.check(plain, version === 4 ? 'ipv4' : 'ipv6');
  }
}

/** A socket that listens on IPv6 shows IPv4 peers as `::ffff:192.0.2.1`. */
export function unmapped(address: string): string {
  return /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address;
}
