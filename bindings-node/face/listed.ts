import type { Replies } from './call';
import { Kind, type Answer, type Entry } from './entry';
import { ProtocolError } from './errors';
import { objectAnswer } from './results';

type Listing = keyof Replies & `${string}/list`;

/** The member of a page that has the items, by method. */
const ITEMS: Readonly<Record<Listing, string>> = {
    'tools/list': 'tools',
    'resources/list': 'resources',
    'resources/templates/list': 'resourceTemplates',
    'prompts/list': 'prompts'
};

/** A list that was asked for, and the page of it; no page if the cursor is unknown. */
type Listed = [method: Listing, page?: Record<string, unknown>];

/** @internal The entry for all lists of a server: the engine has the pages, which middleware may change. */
export const LISTED: Pick<Entry, 'kind' | 'what' | 'call' | 'answer' | 'reply'> = {
    kind: Kind.Lists,
    what: 'list',
    call: ([method, page]: Listed) => {
        if (page === undefined) throw new ProtocolError('invalid params', 'unknown cursor');
        return page[ITEMS[method]];
    },
    answer: (items, [method, page]: Listed): Answer => {
        if (!Array.isArray(items)) throw new TypeError(`${method}: the middleware returned no array`);
        return objectAnswer({ ...page, [ITEMS[method]]: items });
    },
    reply: items => items
};
