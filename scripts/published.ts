// What all published npm packages say about themselves. The package.json of the workspace is the only place for it.
import workspace from '../package.json' with { type: 'json' };

const { author, bugs, homepage, repository } = workspace;

/** The part of a published package.json that comes from the workspace. */
export function published(directory: string) {
  return {
    author,
    homepage,
    bugs,
    repository: { ...repository, directory },
    publishConfig: { access: 'public' },
  };
}
