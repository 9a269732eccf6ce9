// Package manage has the endpoints of the native API by which a server is managed: models, downloads, conversations, tokens and so on.
package manage

import (
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/translate"
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

// parameters are those of a request's query. A parameter that is wrong is kept as err.
type parameters struct {
	url.Values
	err error
}

func parametersOf(c *endpoint.Call) *parameters { return &parameters{Values: c.Request.URL.Query()} }

func (p *parameters) wrong(name, must string) {
	p.err = translate.BadValue(name, "must be %s.", must)
}

// limit is the parameter limit, from least to most. Those that aren't given are as in absent, also for the methods below.
func (p *parameters) limit(least, most, absent int) int {
	given := p.Get("limit")
	if given == "" {
		return absent
	}
	n, err := strconv.Atoi(given)
	if err != nil || n < least || n > most {
		p.wrong("limit", fmt.Sprintf("from %d to %d", least, most))
	}
	return n
}

func (p *parameters) bool(name string, absent bool) bool {
	given := p.Get(name)
	if given == "" {
		return absent
	}
	is, err := strconv.ParseBool(given)
	if err != nil {
		p.wrong(name, "true or false")
	}
	return is
}

func (p *parameters) time(name string) (at time.Time) {
	if given := p.Get(name); given != "" {
		var err error
		if at, err = time.Parse(time.RFC3339Nano, given); err != nil {
			p.wrong(name, "a time such as 2026-01-31T12:00:00Z")
		}
	}
	return at
}

var logLevels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

func (p *parameters) level(absent slog.Level) slog.Level {
	given := p.Get("level")
	level, ok := logLevels[strings.ToLower(given)]
	if given == "" {
		return absent
	}
	if !ok {
		p.wrong("level", `"debug", "info", "warn" or "error"`)
	}
	return level
}
