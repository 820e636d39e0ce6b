import { BlockList, isIP, SocketAddress } from 'node:net';

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
    const version = isIP(address);
    return version !== 0 && this.#list.check(address, version === 4 ? 'ipv4' : 'ipv6');
  }
}

/**
 * The one way to write an address (RFC 5952), so that two of the same are equal texts. IPv4 in IPv6, as a socket shows its peer
 * that listens on IPv6, is IPv4. Undefined for text that is no address.
 */
export function canonical(text: string): string | undefined {
  if (isIP(text) !== 6) return isIP(text) === 4 ? text : undefined;
  return new SocketAddress({ family: 'ipv6', address: text }).address.replace(/^::ffff:(?=\d+\.)/, '');
}
