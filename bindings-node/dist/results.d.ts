import { Block, Json } from './content';
import type { CallToolResult, GetPromptResult, PromptMessage, ResourceContents } from './protocol';
/**
 * The result of a tool: text; bytes, as an embedded resource; one or several content blocks; a whole `CallToolResult`;
 * nothing; or any other JSON value, as structured content.
 */
export type ToolOutput = string | number | boolean | bigint | null | undefined | void | Uint8Array | Block | readonly Block[] | CallToolResult | Json | object;
/** The result of a resource: text, bytes, or complete contents. */
export type ResourceOutput = string | Uint8Array | ResourceContents | readonly ResourceContents[];
/** The result of a prompt: one user message, messages, or a whole `GetPromptResult`. */
export type PromptOutput = string | readonly PromptMessage[] | GetPromptResult;
