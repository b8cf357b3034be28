import { PATHS, TOKEN_SCOPES } from '@undertone/contract';
import { checkNames, choiceProblem, numberProblem, throwIfAny } from './config.ts';
import { type Context, operate, readJson } from './http.ts';
import type { Token, TokenOptions } from './types.ts';
import { siblingUrl, withoutQuery } from './urls.ts';

/** Short-lived tokens, which work like a key. */
export class TokensInterface {
  readonly #begin: () => Context;

  /**
   * Every operation first calls `begin`, which checks the settings.
   * @internal
   */
  constructor(begin: () => Context) {
    this.#begin = begin;
  }

  /** A token for a program that must not have the key, such as a page. A token cannot make tokens. */
  async create(options: TokenOptions = {}): Promise<Token> {
    checkNames('tokens.create', options, ['expiresIn', 'scope', 'signal', 'timeout']);
    const { expiresIn, scope } = options;
    throwIfAny([
      expiresIn === undefined ? undefined : numberProblem('expiresIn', expiresIn),
      choiceProblem('scope', scope, TOKEN_SCOPES),
    ]);
    return operate(this.#begin, options, async (context, signal) => {
      const url = siblingUrl(context.config.asynchUrl, PATHS.tokens);
      const response = await context.callWithRetries('Creating a token', {
        method: 'POST',
        url,
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ expires_in: expiresIn, scope }),
        signal,
      });
      const isValid = ({ token }: Record<string, unknown>) => typeof token === 'string';
      return readJson<Token>(response, withoutQuery(url), isValid);
    });
  }
}
