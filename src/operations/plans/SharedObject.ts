/** An immutable schema object that many requests share. It caches the JSON of the last selection of its fields. */
export abstract class SharedObject {
  #kept: { readonly selection: string; readonly json: string } | undefined;

  /** The cached JSON, if it is of this selection. */
  jsonOf(selection: string): string | undefined {
    return this.#kept?.selection === selection ? this.#kept.json : undefined;
  }

  keepJson(selection: string, json: string): void {
    // Through a buffer, because V8 keeps a concatenated string as its parts and joins them at each use.
    this.#kept = { selection, json: Buffer.from(json).toString() };
  }
}
