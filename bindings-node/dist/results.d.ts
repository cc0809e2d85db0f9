import { Block, Json } from './content';
import type { CallToolResult, GetPromptResult, PromptMessage, ResourceContents } from './protocol';
/**
 * What a tool may give back: text; bytes, as an embedded resource; a block or blocks of content; a whole
 * `CallToolResult`; nothing; or any other value that JSON can say, as structured content.
 */
export type ToolOutput = string | number | boolean | bigint | null | undefined | void | Uint8Array | Block | readonly Block[] | CallToolResult | Json | object;
/** What a resource may give back: text, bytes, or contents of its own making. */
export type ResourceOutput = string | Uint8Array | ResourceContents | readonly ResourceContents[];
/** What a prompt may give back: a user's message, messages, or a whole `GetPromptResult`. */
export type PromptOutput = string | readonly PromptMessage[] | GetPromptResult;
