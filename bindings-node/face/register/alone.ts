/** Whether hooks of others may be there already. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** Options of Node that run something before the program, or change how modules are loaded. Node takes `_` for `-`. */
const BEFORE = /^(?:-r|--(?:require|import|loader|experimental[-_](?:loader|policy|default[-_]type|(?:default[-_])?config[-_]file)))(?:=(.*))?$/;

const root = join(__dirname, '../..');
const ENTRIES = [join(root, 'register.mjs'), join(root, 'dist/register/index.js')];
/** The names under which this package is given to `--import` and `--require`. */
const OWN = ['mcpbolt/register', ...ENTRIES, ...ENTRIES.map(file => pathToFileURL(file).href)];

/**
 * @internal Whether nothing but this package has run in this process. `isFirst` says that the process was started to run
 * this package; else an option of Node must have loaded it.
 */
export function isAlone(isFirst: boolean): boolean {
    const words = [...(process.env.NODE_OPTIONS ?? '').split(/\s+/), ...process.execArgv];
    const before = words.flatMap((word, i) => {
        const option = BEFORE.exec(word);
        return option ? [option[1] ?? words[i + 1] ?? ''] : [];
    });
    return (isFirst || before.length > 0) && before.every(name => OWN.includes(name));
}
