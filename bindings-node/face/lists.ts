import { McpError } from './errors';
import type { Change } from './protocol';
import { arrayOf, type RequestOptions } from './requests';

/** @internal The name of a list. */
export type ListName = 'tools' | 'resources' | 'resourceTemplates' | 'prompts' | 'tasks';

/** By the member of the result that contains the items. */
const LISTS = {
    tools: { capability: 'tools', method: 'tools/list', change: 'toolsChanged' },
    resources: { capability: 'resources', method: 'resources/list', change: 'resourcesChanged' },
    resourceTemplates: { capability: 'resources', method: 'resources/templates/list', change: 'resourcesChanged' },
    prompts: { capability: 'prompts', method: 'prompts/list', change: 'promptsChanged' },
    tasks: { capability: 'tasks', method: 'tasks/list', change: undefined }
} as const;

/** Maximum number of pages of one list. */
const MAX_PAGES = 10_000;
/** Maximum length of a list, in characters of JSON; beyond it no further page is requested. */
const MAX_LENGTH = 64 << 20;
const INVALID_PARAMS = -32602;

export interface ListOptions extends RequestOptions {
    /** Fetches the list even if a cached one is still valid. */
    fresh?: boolean;
}

interface Page<Item> {
    items: Item[];
    /** When the cached page expires, on the clock of `performance`. */
    until: number;
}

type Ask = (capability: string, method: string, params: object, options?: RequestOptions) => Promise<Record<string, unknown>>;

/** @internal The lists of a server: fetched page by page, cached for as long as the server allows (R-CCH-04). */
export class Lists {
    /** Whole lists, cached for this client only, whatever their scope (R-CCH-05). */
    readonly #kept = new Map<ListName, Page<any>>();
    /** Counts the change notifications. */
    #changes = 0;

    constructor(private readonly ask: Ask) {}

    async all<Item>(name: ListName, options: ListOptions = {}): Promise<Item[]> {
        const kept = this.#kept.get(name);
        if (kept && !options.fresh && performance.now() < kept.until) return [...kept.items];
        this.#kept.delete(name);
        const before = this.#changes;
        const whole = await this.#whole<Item>(name, options).catch(error => {
            // A cursor has become invalid, so the list has changed: start again (R-CCH-08).
            if (!(error instanceof StaleCursor)) throw error;
            return this.#whole<Item>(name, options);
        });
        // A list that changed while it was fetched is not cached (R-CCH-07).
        if (before === this.#changes && performance.now() < whole.until) this.#kept.set(name, whole);
        return [...whole.items];
    }

    async #whole<Item>(name: ListName, options: ListOptions): Promise<Page<Item>> {
        const whole: Page<Item> = { items: [], until: Infinity };
        for await (const page of this.#pages<Item>(name, options)) {
            whole.items.push(...page.items);
            whole.until = Math.min(whole.until, page.until);
        }
        return whole;
    }

    async *pages<Item>(name: ListName, options?: RequestOptions): AsyncGenerator<Item[], void, void> {
        for await (const page of this.#pages<Item>(name, options)) yield page.items;
    }

    async *#pages<Item>(name: ListName, options?: RequestOptions): AsyncGenerator<Page<Item>, void, void> {
        const { capability, method } = LISTS[name];
        let cursor: string | undefined;
        const followed = new Set<string>();
        let length = 0;
        for (let page = 0; page < MAX_PAGES && length < MAX_LENGTH; page++) {
            const params = cursor === undefined ? {} : { cursor };
            const result = await this.ask(capability, method, params, options).catch(error => {
                throw cursor !== undefined && error.rpcCode === INVALID_PARAMS ? new StaleCursor(error) : error;
            });
            const { ttlMs } = result;
            const until = performance.now() + (typeof ttlMs === 'number' ? ttlMs : 0);
            yield { items: arrayOf<Item>(result[name], name), until };
            const next = (result.nextCursor ?? undefined) as string | undefined;
            if (next === undefined) return;
            if (followed.has(next)) break;
            followed.add(next);
            cursor = next;
            // The last page may exceed the limit by the length of one message.
            length += JSON.stringify(result).length;
        }
        throw new McpError('ERR_MCP_BAD_ANSWER', `the server's list of ${name} is endless or too long`);
    }

    /** Handles a change notification of the server (R-CCH-07). */
    changed(type: Change['type']): void {
        this.#changes++;
        for (const name of this.#kept.keys()) if (LISTS[name].change === type) this.#kept.delete(name);
    }
}

/** The server rejected a cursor that it had issued. */
class StaleCursor extends McpError {
    constructor({ message, rpcCode, data }: McpError) {
        super('ERR_MCP_PEER', message, { rpcCode: rpcCode!, ...(data !== undefined && { data }) });
    }
}
