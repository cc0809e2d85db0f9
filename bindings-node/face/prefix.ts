import { Kind, type Entry } from './entry';
import { McpError } from './errors';
import { after } from './thenable';

/** @internal The names of a mounted server, as the outer one has them: those of tools and prompts get it before them. */
export class Prefix {
    constructor(readonly prefix: string) {
        if (!/^$|^[\p{ID_Start}_-][\p{ID_Continue}-]*$/u.test(prefix))
            throw new McpError('ERR_MCP_MISUSE', `mount: the prefix ${JSON.stringify(prefix)} is not a name; use letters, digits, _ and -`);
    }

    key(kind: Kind, key: string): string {
        if (this.prefix === '') return key;
        if (kind !== Kind.Resource && kind !== Kind.Template) return `${this.prefix}_${key}`;
        return key.replace('://', `://${this.prefix}/`);
    }

    /** The name or URI that the mounted server has; `undefined` if it is not one of the server's. */
    local(kind: Kind, key: string): string | undefined {
        const at = key.indexOf('://');
        const isUri = kind === Kind.Resource || kind === Kind.Template;
        if (this.prefix === '' || (isUri && at < 0)) return key;
        const [begin, own] = isUri ? [at + 3, `${this.prefix}/`] : [0, `${this.prefix}_`];
        return key.startsWith(own, begin) ? key.slice(0, begin) + key.slice(begin + own.length) : undefined;
    }

    /** Calls an entry of the mounted server, which sees its own URIs; `current` is the entry as it is now. */
    enter({ kind }: Entry, current: () => Entry): Entry['call'] {
        if (kind !== Kind.Resource && kind !== Kind.Template) return (args, context) => current().call(args, context);
        return (args, context) => {
            const uri: string = kind === Kind.Resource ? args : args[0];
            const local = this.local(kind, uri) ?? uri;
            const made = current().call(kind === Kind.Resource ? local : [local, args[1]], context);
            return after(made, value => named(value, local, uri));
        };
    }
}

/** Contents with the URI that the client asked for. */
function named(value: unknown, local: string, uri: string): unknown {
    const one = (item: any) => (item?.uri === local && local !== uri ? { ...item, uri } : item);
    if (value instanceof Uint8Array || typeof value !== 'object') return value;
    return Array.isArray(value) ? value.map(one) : one(value);
}
