/** An object of the schema that never changes and is given to many requests, so that what is written of it can be kept. */
export abstract class SharedObject {
  #kept: { readonly selection: string; readonly json: string } | undefined;

  /** The JSON of a selection of its fields, when it is the one that was written last. */
  jsonOf(selection: string): string | undefined {
    return this.#kept?.selection === selection ? this.#kept.json : undefined;
  }

  keepJson(selection: string, json: string): void {
    // As one piece: a text that was put together is kept as its pieces, which are put together again at each use.
    this.#kept = { selection, json: Buffer.from(json).toString() };
  }
}
