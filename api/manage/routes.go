// Package manage has the endpoints of the native API by which a server is managed: models, downloads, conversations, tokens and so on.
package manage

import (
	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/node/access"
)

// Routes are the endpoints of the native API by which the server is managed.
var Routes = []endpoint.Route{
	endpoint.Get("/lmstudio-greeting", endpoint.Public, endpoint.Fixed(`{"lmstudio":true}`)), // by which LM Studio's clients recognize it
	endpoint.Get(HealthPath, endpoint.Public, health),
	endpoint.Get("/api/v1/root.crt", endpoint.Public, rootCertificate),
	endpoint.Get("/api/v1/settings", endpoint.Anyone, settings),
	endpoint.Get("/api/v1/usage", endpoint.Anyone, usage, "from", "to", "since", "by"),
	endpoint.Get("/api/v1/requests", access.ScopeInference, listRequests, "limit", "model", "outcome"),
	endpoint.Get("/api/v1/requests/", access.ScopeAdmin, getRequest),
	endpoint.Get("/api/v1/events", access.ScopeModelsRead, events, "types", "level"),
	endpoint.Get("/api/v1/logs", access.ScopeAdmin, listLogs,
		"limit", "level", "engine", "model", "instance", "request", "since", "follow"),
	endpoint.Get("/api/v1/tokens", access.ScopeAdmin, listTokens),
	endpoint.Post("/api/v1/tokens", access.ScopeAdmin, createToken),
	endpoint.Patch("/api/v1/tokens/*", access.ScopeAdmin, patchToken),
	endpoint.Delete("/api/v1/tokens/*", access.ScopeAdmin, revokeToken),
	endpoint.Get("/api/v1/conversations", access.ScopeInference, listConversations, "limit", "cursor", "owner", "query", "pinned"),
	endpoint.Post("/api/v1/conversations", access.ScopeInference, importConversation),
	endpoint.Delete("/api/v1/conversations", access.ScopeInference, deleteConversations, "updated_before", "owner"),
	endpoint.Get("/api/v1/conversations/*", access.ScopeInference, getConversation, "responses", "branches", "owner"),
	endpoint.Delete("/api/v1/conversations/*", access.ScopeInference, deleteConversation, "owner"),
	endpoint.Patch("/api/v1/conversations/*", access.ScopeInference, editConversation),
	endpoint.Get("/api/v1/models", access.ScopeModelsList, listModels),
	endpoint.Get("/api/v1/ps", access.ScopeModelsRead, ps),
	endpoint.Post("/api/v1/models/load", access.ScopeModelsManage, load),
	endpoint.Post("/api/v1/models/unload", access.ScopeModelsManage, unload),
	endpoint.Post("/api/v1/models/pin", access.ScopeModelsManage, pin),
	endpoint.Get("/api/v1/models/", access.ScopeModelsRead, showModel),
	endpoint.Get("/api/v1/models/companions", access.ScopeModelsRead, listCompanions),
	endpoint.Get("/api/v1/models/variants", access.ScopeModelsManage, variants, "model"),
	endpoint.Post("/api/v1/runtime", access.ScopeModelsManage, getRuntime),
	endpoint.Get("/api/v1/models/search", access.ScopeModelsManage, search, "query", "limit"),
	endpoint.Delete("/api/v1/models/", access.ScopeModelsManage, remove),
	endpoint.Get("/api/v1/mcp", access.ScopeMCPPlugin, listMCP),
	endpoint.Get("/api/v1/mcp/", access.ScopeMCPPlugin, getMCP),
	endpoint.Get("/api/v1/warm", access.ScopeModelsManage, listWarm),
	endpoint.Delete("/api/v1/warm", access.ScopeModelsManage, clearWarm, "model"),
	endpoint.Post("/api/v1/models/download", access.ScopeModelsManage, download),
	endpoint.Get("/api/v1/models/download", access.ScopeModelsRead, listDownloads),
	endpoint.Get("/api/v1/models/download/*", access.ScopeModelsRead, downloadStatus),
	endpoint.Get("/api/v1/models/download/status/*", access.ScopeModelsRead, downloadStatus),
	endpoint.Post("/api/v1/models/download/*/pause", access.ScopeModelsManage, changeDownload("pause")),
	endpoint.Post("/api/v1/models/download/*/resume", access.ScopeModelsManage, changeDownload("resume")),
	endpoint.Post("/api/v1/models/download/*/cancel", access.ScopeModelsManage, changeDownload("cancel")),
	endpoint.Get("/api/v1/models/download/*/events", access.ScopeModelsRead, downloadEvents),
}
