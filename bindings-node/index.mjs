import face from './dist/index.js';

export const { ActionAnswer, ActionError, audio, Block, Client, image, Json, json, link, McpError, PermissionManager, oauth, prompt, ProtocolError, resource, Results, Server, text, ToolError } = face;
