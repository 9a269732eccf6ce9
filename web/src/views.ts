import type { ComponentType } from "preact";
import type { Scope } from "./core/types";
import type { IconName } from "./ui/icons";
import { ChatView } from "./views/chat";
import { Conversations } from "./views/conversations";
import { Downloads } from "./views/downloads";
import { Logs } from "./views/logs";
import { MCP } from "./views/mcp";
import { Memory } from "./views/memory";
import { Models } from "./views/models";
import { Requests } from "./views/requests";
import { Settings } from "./views/settings";
import { Status } from "./views/status";
import { Tokens } from "./views/tokens";
import { Usage } from "./views/usage";
import { Warm } from "./views/warm";
import { texts } from "./texts";

export interface ViewEntry {
	/** Its name in the address: #/name. */
	name: string;
	title: string;
	/** Of the menu; empty: none. */
	group: string;
	icon: IconName;
	component: ComponentType<{ rest: string }>;
	/** What its reader has to be allowed; absent: nothing. */
	scope?: Scope;
}

/** All views, in the order of the menu. The first one is shown at the start. */
export const views: readonly ViewEntry[] = [
	{ name: "status", title: texts.common.status, group: "", icon: "status", component: Status },
	{ name: "chat", title: texts.common.chat, group: "", icon: "chat", component: ChatView, scope: "inference" },
	{ name: "conversations", title: texts.common.conversations, group: "", icon: "conversations", component: Conversations, scope: "inference" },
	{ name: "models", title: texts.common.models, group: texts.common.models, icon: "models", component: Models, scope: "models.read" },
	{ name: "downloads", title: texts.common.downloads, group: texts.common.models, icon: "downloads", component: Downloads, scope: "models.read" },
	{ name: "memory", title: texts.common.memory, group: texts.common.models, icon: "memory", component: Memory, scope: "models.read" },
	{ name: "warm", title: texts.common.warmStates, group: texts.common.models, icon: "warm", component: Warm, scope: "models.manage" },
	{ name: "requests", title: texts.common.requests, group: texts.views.activity, icon: "requests", component: Requests, scope: "inference" },
	{ name: "logs", title: texts.common.logs, group: texts.views.activity, icon: "logs", component: Logs, scope: "admin" },
	{ name: "usage", title: texts.common.usage, group: texts.views.activity, icon: "usage", component: Usage, scope: "models.read" },
	{ name: "tokens", title: texts.common.tokens, group: texts.common.server, icon: "tokens", component: Tokens, scope: "admin" },
	{ name: "mcp", title: texts.common.mcpServers, group: texts.common.server, icon: "mcp", component: MCP, scope: "mcp.plugin" },
	{ name: "settings", title: texts.common.settings, group: texts.common.server, icon: "settings", component: Settings },
];
