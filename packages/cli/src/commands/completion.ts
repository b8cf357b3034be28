import { Argument, type Command, type Option } from 'commander';

const SHELLS = ['bash', 'zsh', 'fish'] as const;

const MORE = `
Examples:
  source <(undertone completion bash)    in ~/.bashrc
  source <(undertone completion zsh)     in ~/.zshrc
  undertone completion fish | source     in ~/.config/fish/config.fish

It completes the command \`undertone\`. In a clone, add node_modules/.bin to your
PATH first.`;

export function addCompletion(program: Command): void {
  program
    .command('completion')
    .summary('print a completion script for your shell')
    .description('Prints a script that completes commands, flags and their values in your shell.')
    .addArgument(new Argument('<shell>', 'your shell').choices(SHELLS))
    .addHelpText('after', MORE)
    .action((shell: (typeof SHELLS)[number]) => {
      const commands = commandsOf(program, []);
      process.stdout.write(shell === 'fish' ? forFish(commands) : forBash(commands, shell === 'zsh'));
    });
}

type PathAndCommand = readonly [path: readonly string[], command: Command];

/** Every command with the words that lead to it: none for the program, then `keys`, `keys create`. */
function commandsOf(command: Command, path: readonly string[]): PathAndCommand[] {
  const inner = command.commands.flatMap((child) => commandsOf(child, [...path, child.name()]));
  return [[path, command], ...inner];
}

function flagsOf({ options }: Command): (Option & { long: string })[] {
  return options.filter((option): option is Option & { long: string } => !option.hidden && !!option.long);
}

/** True if the command takes paths, so that its arguments are completed as files. */
function takesFiles({ registeredArguments }: Command): boolean {
  return registeredArguments.some((argument) => /^(path|file|folder)$/.test(argument.name()));
}

/** Values of a flag: its choices, or files where its value is one. */
function valuesOf({ argChoices, flags }: Option): readonly string[] | 'files' {
  return argChoices ?? (/<(file|folder|dir)>/.test(flags) ? 'files' : []);
}

/**
 * One `case` for each flag with a value and for each command, longest path first. Where a file is expected the function
 * offers nothing, and the shell its file names; flags then follow a dash.
 */
function forBash(all: readonly PathAndCommand[], inZsh: boolean): string {
  const deepestFirst = all.toSorted(([a], [b]) => b.length - a.length);
  const cases = deepestFirst.flatMap(([path, command]) => {
    const pattern = path.length === 0 ? '*' : `'${path.join(' ')} '*`;
    const flags = flagsOf(command);
    const names = command.commands.map((child) => child.name());
    const choices = command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices);
    const words = [...names, ...choices, ...flags.map(({ long }) => long), '--help'].join(' ');
    const rule = takesFiles(command) ? `words='${words}' files=yes` : `words='${words}'`;
    return [
      ...flags
        .filter(({ required }) => required)
        .map((flag) => {
          const names = [flag.long, flag.short].filter((name) => name !== undefined);
          const patterns = names.map((name) => `${pattern}'${name} '`).join('|');
          const values = valuesOf(flag);
          return `    ${patterns}) ${values === 'files' ? 'files=only' : `words='${values.join(' ')}'`} ;;`;
        }),
      `    ${pattern}) ${rule} ;;`,
    ];
  });
  return `${inZsh ? 'autoload -U +X bashcompinit && bashcompinit\n' : ''}_undertone() {
  local words='' files=no current="\${COMP_WORDS[COMP_CWORD]}"
  case "\${COMP_WORDS[*]:1:COMP_CWORD-1} " in
${cases.join('\n')}
  esac
  COMPREPLY=()
  [[ $files == only || ( $files == yes && $current != -* ) ]] && return
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  compopt +o default 2>/dev/null
}
complete -o default -F _undertone undertone
`;
}

/** The same names can be commands of two groups, such as `list` and `keys list`: a rule holds in its own group only. */
function forFish(all: readonly PathAndCommand[]): string {
  const quoted = (text: string) => `'${text.replaceAll("'", "\\'")}'`;
  const seen = (names: readonly string[]) => `__fish_seen_subcommand_from ${names.join(' ')}`;
  const groups = all.flatMap(([path, { commands }]) =>
    path.length === 1 && commands.length > 0 ? path : [],
  );
  const lines = all.flatMap(([path, command]) => {
    const names = command.commands.map((child) => [child.name(), child.summary()] as const);
    const others = [
      ...(path.length === 1 ? groups.filter((group) => group !== path[0]) : []),
      ...names.map(([name]) => name),
    ];
    const where = [
      ...path.map((name) => seen([name])),
      ...(path.length > 0 && others.length > 0 ? [`not ${seen(others)}`] : []),
    ];
    const rule = `complete -c undertone -n ${quoted(where.join('; and ') || '__fish_use_subcommand')}`;
    const choices = command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices);
    return [
      ...(takesFiles(command) ? [] : [`${rule} -f`]),
      ...names.map(([name, summary]) => `${rule} -f -a ${name} -d ${quoted(summary)}`),
      ...choices.map((choice) => `${rule} -f -a ${choice}`),
      ...flagsOf(command).map((flag) => {
        const values = valuesOf(flag);
        const value =
          values === 'files' ? ' -r -F' : values.length > 0 ? ` -x -a ${quoted(values.join(' '))}` : ' -x';
        const short = flag.short ? ` -s ${flag.short.slice(1)}` : '';
        return `${rule} -l ${flag.long.slice(2)}${short} -d ${quoted(flag.description)}${flag.required ? value : ''}`;
      }),
    ];
  });
  return `${lines.join('\n')}\n`;
}
