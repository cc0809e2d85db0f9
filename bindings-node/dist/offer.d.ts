import { type Steps } from './attempt';
import type { Context } from './context';
import type { JwtKey, PromptDefinition, ResourceDefinition, ResourceTemplateDefinition, ToolDefinition } from './definitions';
import type { PromptOutput, ResourceOutput, ToolOutput } from './results';
type Awaitable<T> = T | Promise<T>;
/**
 * The tools, resources, prompts and other entries of a server. Add them before it runs, or later with `listChanges`.
 */
export declare abstract class Offer<State> {
    #private;
    /**
     * Replaces the keys of `policy.jwt`, by their `kid`, from the next token on. To rotate keys without refusing any
     * client, first pass the old and the new key, then only the new one once the last token of the old key has expired.
     * Throws `ERR_MCP_MISUSE` if the policy verifies no tokens, a key does not fit its algorithm, or no key is given;
     * the old keys then stay.
     */
    replaceJwtKeys(keys: Readonly<Record<string, JwtKey>>): void;
    /** Adds a tool. The handler is called only with arguments that fit the schema. */
    tool<Args = Record<string, any>>(name: string, definition: ToolDefinition<Args>, handler: (args: Args, context: Context<State>, steps: Steps) => Awaitable<ToolOutput>): this;
    /** Adds a resource. */
    resource(uri: string, definition: ResourceDefinition, handler: (uri: string, context: Context<State>) => Awaitable<ResourceOutput>): this;
    /** Adds resources by URI template; the handler gets the URI and the values of the template's variables. */
    resourceTemplate(template: string, definition: ResourceTemplateDefinition<State>, handler: (uri: string, variables: Record<string, string>, context: Context<State>) => Awaitable<ResourceOutput>): this;
    /** Adds a prompt. */
    prompt(name: string, definition: PromptDefinition<State>, handler: (args: Record<string, string>, context: Context<State>) => Awaitable<PromptOutput>): this;
    /**
     * Adds a method of an extension in the `extensions` option. Clients that declared the extension may call it, from
     * 2026-07-28 on; other clients get an error that names the extension to declare. The handler gets the params, and
     * returns an object.
     */
    extensionMethod<Params = Record<string, any>>(extension: string, method: string, handler: (params: Params, context: Context<State>) => Awaitable<object>): this;
    /**
     * Adds the skill in a folder, or every skill below it: folders with a `SKILL.md`. Their files are read now; files
     * that begin with a dot are skipped. The path between `folder` and a skill becomes part of the skill's URI.
     */
    skills(folder: string | URL): this;
    /**
     * Removes a tool and returns whether it existed. Calls in progress finish. Needs `listChanges` once the server
     * runs.
     */
    removeTool(name: string): boolean;
    /** Removes a resource and returns whether it existed. */
    removeResource(uri: string): boolean;
    /** Removes a resource template and returns whether it existed. */
    removeResourceTemplate(template: string): boolean;
    /** Removes a prompt and returns whether it existed. */
    removePrompt(name: string): boolean;
    /** Notifies the clients that subscribed to a resource that it changed. Needs `subscriptions`. */
    resourceUpdated(uri: string | URL): void;
}
export {};
