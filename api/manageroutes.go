package api

import (
	"github.com/lmcaddy/lmcaddy/node"
)

// manageRoutes are the endpoints of the native API by which the server is managed.
var manageRoutes = []route{
	get("/lmstudio-greeting", public, (*call).greet),
	get(healthPath, public, (*call).health),
	get("/api/v1/root.crt", public, (*call).rootCertificate),
	get("/api/v1/settings", anyone, (*call).settings),
	get("/api/v1/openapi.json", anyone, (*call).describe),
	get("/api/v1/usage", anyone, (*call).usage, "from", "to", "since", "by"),
	get("/api/v1/requests", node.ScopeInference, (*call).listRequests, "limit", "model", "outcome"),
	get("/api/v1/requests/", node.ScopeAdmin, (*call).getRequest),
	get("/api/v1/events", node.ScopeModelsRead, (*call).events, "types", "level"),
	get("/api/v1/logs", node.ScopeAdmin, (*call).logs, "limit", "level", "engine", "model", "instance", "request", "since", "follow"),
	get("/api/v1/tokens", node.ScopeAdmin, (*call).listTokens),
	post("/api/v1/tokens", node.ScopeAdmin, (*call).createToken),
	patch("/api/v1/tokens/*", node.ScopeAdmin, (*call).editToken),
	del("/api/v1/tokens/*", node.ScopeAdmin, (*call).revokeToken),
	get("/api/v1/conversations", node.ScopeInference, (*call).listConversations, "limit", "cursor", "owner"),
	del("/api/v1/conversations", node.ScopeInference, (*call).deleteConversations, "updated_before", "owner"),
	get("/api/v1/conversations/*", node.ScopeInference, (*call).getConversation, "responses", "branches", "owner"),
	del("/api/v1/conversations/*", node.ScopeInference, (*call).deleteConversation, "owner"),
	get("/api/v1/models", node.ScopeModelsList, (*call).listNative),
	get("/api/v1/ps", node.ScopeModelsRead, (*call).ps),
	post("/api/v1/models/load", node.ScopeModelsManage, (*call).load),
	post("/api/v1/models/unload", node.ScopeModelsManage, (*call).unload),
	post("/api/v1/models/pin", node.ScopeModelsManage, (*call).pin),
	get("/api/v1/models/", node.ScopeModelsRead, (*call).showModel),
	get("/api/v1/models/companions", node.ScopeModelsRead, (*call).listCompanions),
	get("/api/v1/models/variants", node.ScopeModelsManage, (*call).variants, "model"),
	get("/api/v1/models/search", node.ScopeModelsManage, (*call).search, "query", "limit"),
	del("/api/v1/models/", node.ScopeModelsManage, (*call).remove),
	get("/api/v1/mcp", node.ScopeMCPPlugin, (*call).listMCP),
	get("/api/v1/mcp/", node.ScopeMCPPlugin, (*call).getMCP),
	get("/api/v1/warm", node.ScopeModelsManage, (*call).listWarm),
	del("/api/v1/warm", node.ScopeModelsManage, (*call).clearWarm, "model"),
	post("/api/v1/models/download", node.ScopeModelsManage, (*call).download),
	get("/api/v1/models/download", node.ScopeModelsRead, (*call).listDownloads),
	get("/api/v1/models/download/*", node.ScopeModelsRead, (*call).downloadStatus),
	get("/api/v1/models/download/status/*", node.ScopeModelsRead, (*call).downloadStatus),
	post("/api/v1/models/download/*/pause", node.ScopeModelsManage, (*call).pauseDownload),
	post("/api/v1/models/download/*/resume", node.ScopeModelsManage, (*call).resumeDownload),
	post("/api/v1/models/download/*/cancel", node.ScopeModelsManage, (*call).cancelDownload),
	get("/api/v1/models/download/*/events", node.ScopeModelsRead, (*call).downloadEvents),
}
