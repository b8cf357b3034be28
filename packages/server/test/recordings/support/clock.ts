/** A clock that the test sets. */
export class Clock {
  ms = Date.UTC(2030, 0, 1);
  readonly now = () => this.ms;
}
