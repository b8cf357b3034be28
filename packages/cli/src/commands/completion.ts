import { Argument, type Command, type Option } from 'commander';

const SHELLS = ['bash', 'zsh', 'fish'] as const;

const MORE = `
Examples:
  source <(undertone completion bash)    in ~/.bashrc
  source <(undertone completion zsh)     in ~/.zshrc
  undertone completion fish | source     in ~/.config/fish/config.fish

It completes the command \`undertone\`. In a clone, add node_modules/.bin to your PATH first.`;

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

/** One `case` for each flag with a value and for each command, longest path first. Without words the shell offers files. */
function forBash(all: readonly PathAndCommand[], inZsh: boolean): string {
  const deepestFirst = all.toSorted(([a], [b]) => b.length - a.length);
  const cases = deepestFirst.flatMap(([path, command]) => {
    const pattern = `'${path.join(' ')}'*`;
    const flags = flagsOf(command);
    const names = command.commands.map((child) => child.name());
    const choices = command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices);
    const words = [...names, ...choices, ...flags.map(({ long }) => long), '--help'];
    return [
      ...flags
        .filter(({ required }) => required)
        .map(({ long, argChoices = [] }) => `    ${pattern}' ${long}') words='${argChoices.join(' ')}' ;;`),
      `    ${pattern}) words='${words.join(' ')}' ;;`,
    ];
  });
  return `${inZsh ? 'autoload -U +X bashcompinit && bashcompinit\n' : ''}_undertone() {
  local words=''
  case "\${COMP_WORDS[*]:1:COMP_CWORD-1}" in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _undertone undertone
`;
}

function forFish(all: readonly PathAndCommand[]): string {
  const quoted = (text: string) => `'${text.replaceAll("'", "\\'")}'`;
  const lines = all.flatMap(([path, command]) => {
    const seen = path.map((name) => `__fish_seen_subcommand_from ${name}`).join('; and ');
    const rule = `complete -c undertone -n ${quoted(seen || '__fish_use_subcommand')}`;
    const names = command.commands.map((child) => [child.name(), child.summary()] as const);
    const choices = command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices);
    return [
      ...names.map(([name, summary]) => `${rule} -f -a ${name} -d ${quoted(summary)}`),
      ...choices.map((choice) => `${rule} -f -a ${choice}`),
      ...flagsOf(command).map(({ long, description, argChoices }) => {
        const values = argChoices ? ` -x -a ${quoted(argChoices.join(' '))}` : '';
        return `${rule} -l ${long.slice(2)} -d ${quoted(description)}${values}`;
      }),
    ];
  });
  return `${lines.join('\n')}\n`;
}
