import { Argument, type Command } from 'commander';

const SHELLS = ['bash', 'zsh', 'fish'] as const;

const MORE = `
Examples:
  source <(undertone completion bash)    in ~/.bashrc
  source <(undertone completion zsh)     in ~/.zshrc
  undertone completion fish | source     in ~/.config/fish/config.fish

It completes the command \`undertone\`: in a clone that is in node_modules/.bin, which has to be in your PATH.`;

export function addCompletion(program: Command): void {
  program
    .command('completion')
    .summary('print a script that completes commands and flags in your shell')
    .description(
      'Prints a script for your shell. It completes commands, flags and the values of flags that have a few.',
    )
    .addArgument(new Argument('<shell>', 'your shell').choices(SHELLS))
    .addHelpText('after', MORE)
    .action((shell: (typeof SHELLS)[number]) => {
      process.stdout.write(shell === 'fish' ? forFish(program) : forBash(program, shell === 'zsh'));
    });
}

/** What can follow the words so far: `''` is the beginning, `keys create` a command in a command. */
function choicesOf(program: Command): Map<string, string[]> {
  const found = new Map<string, string[]>();
  const visit = (command: Command, path: string) => {
    const flags = command.options.flatMap(({ long, hidden }) => (long && !hidden ? [long] : []));
    const commands = command.commands.map((inner) => inner.name());
    const values = command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []);
    found.set(path, [...commands, ...values, ...flags, '--help']);
    for (const inner of command.commands) visit(inner, `${path} ${inner.name()}`.trim());
  };
  visit(program, '');
  return found;
}

/** Flags whose values are a few words. */
function valuesOf(program: Command): Map<string, readonly string[]> {
  const all = [program, ...program.commands, ...program.commands.flatMap(({ commands }) => commands)];
  const options = all.flatMap(({ options }) => options);
  return new Map(options.flatMap(({ long, argChoices }) => (long && argChoices ? [[long, argChoices]] : [])));
}

function forBash(program: Command, inZsh: boolean): string {
  const values = [...valuesOf(program)].map(([flag, words]) => `    ${flag}) words='${words.join(' ')}' ;;`);
  const choices = [...choicesOf(program)]
    .toSorted(([a], [b]) => b.length - a.length) // the most particular first
    .map(([path, words]) => `    '${path}'*) words='${words.join(' ')}' ;;`);
  return `${inZsh ? 'autoload -U +X bashcompinit && bashcompinit\n' : ''}_undertone() {
  local words=''
  case "\${COMP_WORDS[COMP_CWORD-1]}" in
${values.join('\n')}
  esac
  [ -n "$words" ] || case "\${COMP_WORDS[*]:1:COMP_CWORD-1}" in
${choices.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _undertone undertone
`;
}

function forFish(program: Command): string {
  const quoted = (text: string) => `'${text.replaceAll("'", "\\'")}'`;
  const flagsOf = (command: Command, condition: string) =>
    command.options.flatMap(({ long, hidden, description, argChoices }) =>
      long && !hidden
        ? [
            `complete -c undertone -n ${quoted(condition)} -l ${long.slice(2)} -d ${quoted(description)}` +
              (argChoices ? ` -x -a ${quoted(argChoices.join(' '))}` : ''),
          ]
        : [],
    );
  const lines = program.commands.flatMap((command) => {
    const seen = `__fish_seen_subcommand_from ${command.name()}`;
    return [
      `complete -c undertone -n __fish_use_subcommand -f -a ${command.name()} -d ${quoted(command.summary())}`,
      ...flagsOf(command, seen),
      ...command.commands.flatMap((inner) => [
        `complete -c undertone -n ${quoted(seen)} -f -a ${inner.name()} -d ${quoted(inner.summary())}`,
        ...flagsOf(inner, `${seen}; and __fish_seen_subcommand_from ${inner.name()}`),
      ]),
    ];
  });
  return `${lines.join('\n')}\n`;
}
