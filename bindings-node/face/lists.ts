import { McpError } from './errors';
import type { Change } from './protocol';
import { arrayOf, type RequestOptions } from './requests';

/** @internal Which list. */
export type ListName = 'tools' | 'resources' | 'resourceTemplates' | 'prompts' | 'tasks';

/** By the member of the result that holds the items. */
const LISTS = {
    tools: { capability: 'tools', method: 'tools/list', change: 'toolsChanged' },
    resources: { capability: 'resources', method: 'resources/list', change: 'resourcesChanged' },
    resourceTemplates: { capability: 'resources', method: 'resources/templates/list', change: 'resourcesChanged' },
    prompts: { capability: 'prompts', method: 'prompts/list', change: 'promptsChanged' },
    tasks: { capability: 'tasks', method: 'tasks/list', change: undefined }
} as const;

/** Most pages of one list that are followed. */
const MAX_PAGES = 10_000;
const INVALID_PARAMS = -32602;

export interface ListOptions extends RequestOptions {
    /** Asks the server also where it has said that the last answer may still be used. */
    fresh?: boolean;
}

interface Page<Item> {
    items: Item[];
    /** Until when it may be used, on the clock of `performance`. */
    until: number;
}

type Ask = (capability: string, method: string, params: object, options?: RequestOptions) => Promise<Record<string, unknown>>;

/** @internal The lists of a server: asked for page by page, kept for as long as it says (R-CCH-04). */
export class Lists {
    readonly #ask: Ask;
    /** Whole lists; nobody else's, whatever their scope (R-CCH-05). */
    readonly #kept = new Map<ListName, Page<any>>();
    /** Counts the changes that were told. */
    #changes = 0;

    constructor(ask: Ask) {
        this.#ask = ask;
    }

    async all<Item>(name: ListName, options: ListOptions = {}): Promise<Item[]> {
        const kept = this.#kept.get(name);
        if (kept && !options.fresh && performance.now() < kept.until) return [...kept.items];
        this.#kept.delete(name);
        const before = this.#changes;
        const whole = await this.#whole<Item>(name, options).catch(error => {
            // A cursor that was good is not any more: the list is another one now (R-CCH-08).
            if (!(error instanceof StaleCursor)) throw error;
            return this.#whole<Item>(name, options);
        });
        // What changed meanwhile is not kept (R-CCH-07).
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
        for (let page = 0; page < MAX_PAGES; page++) {
            const params = cursor === undefined ? {} : { cursor };
            const result = await this.#ask(capability, method, params, options).catch(error => {
                throw cursor !== undefined && error.rpcCode === INVALID_PARAMS ? new StaleCursor(error) : error;
            });
            const { ttlMs } = result;
            const until = performance.now() + (typeof ttlMs === 'number' ? ttlMs : 0);
            yield { items: arrayOf<Item>(result[name], name), until };
            const next = (result.nextCursor ?? undefined) as string | undefined;
            if (next === undefined) return;
            if (next === cursor) break;
            cursor = next;
        }
        throw new McpError('ERR_MCP_BAD_ANSWER', `the list of ${name} has no end`);
    }

    /** The server told that something is another now (R-CCH-07). */
    changed(type: Change['type']): void {
        this.#changes++;
        for (const name of this.#kept.keys()) if (LISTS[name].change === type) this.#kept.delete(name);
    }
}

/** The server does not know a cursor that it gave. */
class StaleCursor extends McpError {
    constructor({ message, rpcCode, data }: McpError) {
        super('ERR_MCP_PEER', message, { rpcCode: rpcCode!, ...(data !== undefined && { data }) });
    }
}
