import type { Replies } from './call';
import type { Context } from './context';
import type { CompletionParams, Completer } from './complete';
import type { Reports } from './failures';
import type { Outbound } from './link';
import type { NativeEntries } from './native';

/** @internal In the order of the engine's operations: `src/operation.rs`. */
export const enum Kind {
    Tool,
    Resource,
    Template,
    Prompt,
    Completion,
    Method,
    Lists
}

/** @internal */
export const KINDS = 7;

/** @internal The words for the kinds. */
export const WORDS: Readonly<Record<Kind, string>> = ['tool', 'resource', 'resource template', 'prompt', 'completion', 'method', 'list'];

/** @internal Runs a handler, with its arguments as they came from the engine. */
export type Called = (args: any, context: Context<any>) => unknown;
/** @internal */
export type Answer = [kind: Outbound, text: string];

/** @internal One entry of the registry: how to call it, and how to encode its result. */
export interface Entry {
    kind: Kind;
    /** Its name, URI or URI template. */
    key: string;
    what: string;
    isTool: boolean;
    /**
     * The number of a tool with an output schema, counted from one: the engine validates the tool's results against it.
     */
    checked?: number;
    call: Called;
    answer: (value: unknown, args: any) => Answer;
    /** The reply, as middleware sees it, that a value of the handler stands for. Without it no middleware is around it. */
    reply?: (value: unknown, args: any, context: Context<any>) => unknown;
    /** Why arguments, as JSON, break the schema of a tool. */
    misfit?: (json: string) => string | null;
    /** The names of a prompt's arguments. */
    parameters?: readonly string[];
    failures: Reports;
    /** The server whose state its handler gets, if it is not the one that serves. */
    owner?: object;
    /** Finds the server whose state the call gets. */
    ownerOf?: (params: CompletionParams) => object | undefined;
}

/** @internal An entry that can be registered, under a name or URI of choice; returns its number. */
export interface Offered {
    entry: Entry;
    register?: (entries: NativeEntries, key: string) => number;
    remove?: (entries: NativeEntries, key: string) => boolean;
    hasOutput?: boolean;
    completers?: readonly (readonly [string, Completer | undefined])[];
}

/** The parts of a call as middleware sees them. */
interface Form {
    method: (args: any) => keyof Replies;
    name: (args: any, key: string) => string | undefined;
    arguments: (args: any) => object;
    replace?: (args: any, given: object) => unknown;
}

/** @internal */
export const FORMS: Readonly<Record<Kind, Form>> = {
    [Kind.Tool]: { method: () => 'tools/call', name: (_, key) => key, arguments: args => args, replace: (_, given) => given },
    [Kind.Resource]: { method: () => 'resources/read', name: uri => uri, arguments: () => ({}) },
    [Kind.Template]: {
        method: () => 'resources/read',
        name: ([uri]) => uri,
        arguments: ([, variables]) => variables,
        replace: ([uri], given) => [uri, given]
    },
    [Kind.Prompt]: { method: () => 'prompts/get', name: (_, key) => key, arguments: args => args, replace: (_, given) => given },
    [Kind.Completion]: {
        method: () => 'completion/complete',
        name: ({ ref }) => ref.name ?? ref.uri,
        arguments: ({ argument }) => ({ [argument.name]: argument.value })
    },
    [Kind.Method]: { method: () => 'tools/call', name: (_, key) => key, arguments: args => args },
    [Kind.Lists]: { method: ([method]) => method, name: () => undefined, arguments: () => ({}) }
};
