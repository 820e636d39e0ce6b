/** A point in time that is written as JSON many times: the text is made once. */
export class Timestamp extends Date {
  #json: string | undefined;

  /** As ISO 8601 in UTC. */
  override toJSON(): string {
    this.#json ??= super.toJSON();
    return this.#json;
  }
}
