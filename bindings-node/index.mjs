import face from './dist/index.js';

export const { ActionAnswer, ActionError, audio, Block, Client, External, Front, image, Json, json, link, McpError, PermissionManager, Pool, Prefix, oauth, prompt, ProtocolError, resource, Results, Server, text, ToolError } = face;
