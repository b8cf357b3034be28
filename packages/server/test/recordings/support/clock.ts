/** A clock the test moves by hand. */
export class Clock {
  ms = Date.UTC(2030, 0, 1);
  readonly now = () => this.ms;
}
