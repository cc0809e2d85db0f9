import { type Steps } from './attempt';
import type { Context } from './context';
import type { PromptDefinition, ResourceDefinition, ResourceTemplateDefinition, ToolDefinition } from './definitions';
import type { PromptOutput, ResourceOutput, ToolOutput } from './results';
type Awaitable<T> = T | Promise<T>;
/** What a server offers: before it runs, or later with `listChanges`. */
export declare abstract class Offer<State> {
    #private;
    /** Adds a tool. Arguments that break its schema never reach the handler. */
    tool<Args = Record<string, any>>(name: string, definition: ToolDefinition<Args>, handler: (args: Args, context: Context<State>, steps: Steps) => Awaitable<ToolOutput>): this;
    /** Adds a resource. */
    resource(uri: string, definition: ResourceDefinition, handler: (uri: string, context: Context<State>) => Awaitable<ResourceOutput>): this;
    /** Adds resources by URI template; the handler takes the URI and the template's variables. */
    resourceTemplate(template: string, definition: ResourceTemplateDefinition<State>, handler: (uri: string, variables: Record<string, string>, context: Context<State>) => Awaitable<ResourceOutput>): this;
    /** Adds a prompt. */
    prompt(name: string, definition: PromptDefinition<State>, handler: (args: Record<string, string>, context: Context<State>) => Awaitable<PromptOutput>): this;
    /**
     * Adds a method of an extension that the options name. Clients that declared the extension may call it, from
     * 2026-07-28 on; others are told what to declare. The handler takes the params, and gives an object.
     */
    extensionMethod<Params = Record<string, any>>(extension: string, method: string, handler: (params: Params, context: Context<State>) => Awaitable<object>): this;
    /**
     * Adds the skill in a folder, or all those below it: folders with a `SKILL.md`. Their files are read now, those that
     * begin with a dot left out; what lies between becomes part of a skill's URI.
     */
    skills(folder: string | URL): this;
    /** Takes a tool away; whether there was one. Calls under way are finished. Needs `listChanges` once it runs. */
    removeTool(name: string): boolean;
    /** Takes a resource away; whether there was one. */
    removeResource(uri: string): boolean;
    /** Takes a template away; whether there was one. */
    removeResourceTemplate(template: string): boolean;
    /** Takes a prompt away; whether there was one. */
    removePrompt(name: string): boolean;
    /** Tells the clients that subscribed to it that a resource is another now. Needs `subscriptions`. */
    resourceUpdated(uri: string | URL): void;
}
export {};
