// Package manage has the endpoints of the native API by which a server is managed: models, downloads, conversations, tokens, usage, logs and events.
package manage

import (
	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/node"
)

// Routes are the endpoints of the native API by which the server is managed.
var Routes = []endpoint.Route{
	endpoint.Get("/lmstudio-greeting", endpoint.Public, greet),
	endpoint.Get(HealthPath, endpoint.Public, health),
	endpoint.Get("/api/v1/root.crt", endpoint.Public, rootCertificate),
	endpoint.Get("/api/v1/settings", endpoint.Anyone, settings),
	endpoint.Get("/api/v1/usage", endpoint.Anyone, usage, "from", "to", "since", "by"),
	endpoint.Get("/api/v1/requests", node.ScopeInference, listRequests, "limit", "model", "outcome"),
	endpoint.Get("/api/v1/requests/", node.ScopeAdmin, getRequest),
	endpoint.Get("/api/v1/events", node.ScopeModelsRead, events, "types", "level"),
	endpoint.Get("/api/v1/logs", node.ScopeAdmin, listLogs, "limit", "level", "engine", "model", "instance", "request", "since", "follow"),
	endpoint.Get("/api/v1/tokens", node.ScopeAdmin, listTokens),
	endpoint.Post("/api/v1/tokens", node.ScopeAdmin, createToken),
	endpoint.Patch("/api/v1/tokens/*", node.ScopeAdmin, patchToken),
	endpoint.Delete("/api/v1/tokens/*", node.ScopeAdmin, revokeToken),
	endpoint.Get("/api/v1/conversations", node.ScopeInference, listConversations, "limit", "cursor", "owner"),
	endpoint.Delete("/api/v1/conversations", node.ScopeInference, deleteConversations, "updated_before", "owner"),
	endpoint.Get("/api/v1/conversations/*", node.ScopeInference, getConversation, "responses", "branches", "owner"),
	endpoint.Delete("/api/v1/conversations/*", node.ScopeInference, deleteConversation, "owner"),
	endpoint.Get("/api/v1/models", node.ScopeModelsList, listModels),
	endpoint.Get("/api/v1/ps", node.ScopeModelsRead, ps),
	endpoint.Post("/api/v1/models/load", node.ScopeModelsManage, load),
	endpoint.Post("/api/v1/models/unload", node.ScopeModelsManage, unload),
	endpoint.Post("/api/v1/models/pin", node.ScopeModelsManage, pin),
	endpoint.Get("/api/v1/models/", node.ScopeModelsRead, showModel),
	endpoint.Get("/api/v1/models/companions", node.ScopeModelsRead, listCompanions),
	endpoint.Get("/api/v1/models/variants", node.ScopeModelsManage, variants, "model"),
	endpoint.Get("/api/v1/models/search", node.ScopeModelsManage, search, "query", "limit"),
	endpoint.Delete("/api/v1/models/", node.ScopeModelsManage, remove),
	endpoint.Get("/api/v1/mcp", node.ScopeMCPPlugin, listMCP),
	endpoint.Get("/api/v1/mcp/", node.ScopeMCPPlugin, getMCP),
	endpoint.Get("/api/v1/warm", node.ScopeModelsManage, listWarm),
	endpoint.Delete("/api/v1/warm", node.ScopeModelsManage, clearWarm, "model"),
	endpoint.Post("/api/v1/models/download", node.ScopeModelsManage, download),
	endpoint.Get("/api/v1/models/download", node.ScopeModelsRead, listDownloads),
	endpoint.Get("/api/v1/models/download/*", node.ScopeModelsRead, downloadStatus),
	endpoint.Get("/api/v1/models/download/status/*", node.ScopeModelsRead, downloadStatus),
	endpoint.Post("/api/v1/models/download/*/pause", node.ScopeModelsManage, pauseDownload),
	endpoint.Post("/api/v1/models/download/*/resume", node.ScopeModelsManage, resumeDownload),
	endpoint.Post("/api/v1/models/download/*/cancel", node.ScopeModelsManage, cancelDownload),
	endpoint.Get("/api/v1/models/download/*/events", node.ScopeModelsRead, downloadEvents),
}
