import { type DocumentNode, type StringValueNode, visit } from 'graphql';
import { NotPlannable } from './Plan.js';

/** Which of the string literals of a template is which. */
export class TemplateLiterals {
  /** Where they begin, in ascending order. */
  readonly #starts: number[] = [];
  readonly #places: ReadonlyMap<number, number>;

  /** `count`: how many were taken out of the text. */
  constructor(document: DocumentNode, count: number) {
    if (count > 0) this.#findIn(document);
    if (this.#starts.length !== count) throw new NotPlannable();
    this.#places = new Map(this.#starts.map((start, place) => [start, place]));
  }

  #findIn(document: DocumentNode): void {
    visit(document, {
      // A default is no argument, and its value is needed now.
      VariableDefinition: ({ defaultValue }) => {
        if (defaultValue) throw new NotPlannable();
      },
      StringValue: ({ loc }) => void this.#starts.push(loc?.start ?? 0),
    });
    this.#starts.sort((a, b) => a - b);
  }

  /** Undefined when the text of the literal is in the document. */
  placeOf({ loc }: StringValueNode): number | undefined {
    return this.#places.get(loc?.start ?? -1);
  }

  get exist(): boolean {
    return this.#starts.length > 0;
  }

  /** Where in the text that was sent a position of the template is. */
  positionIn(literals: readonly string[], position: number): number {
    let moved = position;
    for (let place = 0; place < literals.length && (this.#starts[place] ?? 0) < position; place += 1) {
      moved += literals[place]?.length ?? 0;
    }
    return moved;
  }
}
