/** An immutable object of the schema that many requests share, so that the JSON of a selection can be kept with it. */
export abstract class SharedObject {
  #kept: { readonly selection: string; readonly json: string } | undefined;

  /** The JSON of a selection of its fields, if it was the last one kept. */
  jsonOf(selection: string): string | undefined {
    return this.#kept?.selection === selection ? this.#kept.json : undefined;
  }

  keepJson(selection: string, json: string): void {
    // Through a buffer, because V8 keeps a concatenated string as its parts and joins them at each use.
    this.#kept = { selection, json: Buffer.from(json).toString() };
  }
}
