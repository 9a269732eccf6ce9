package access

import (
	"strings"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/catalog/fetch"
)

// DownloadKey returns the key of the model in a folder (publisher/name) with a quantization; an empty one means any.
func DownloadKey(folder, quantization string) string {
	publisher, repo, _ := strings.Cut(folder, "/")
	key := catalog.Key(publisher, repo)
	if quantization != "" {
		key += "@" + strings.ToLower(quantization)
	}
	return key
}

// MayFetch reports whether an identity may download the model in a folder (publisher/name). Before the quantization is
// chosen, it is enough that the identity may use any of them.
func (i *Identity) MayFetch(folder, quantization string, isChosen bool) bool {
	key := DownloadKey(folder, "")
	return i.MayUse(key) || i.MayUse(DownloadKey(folder, quantization)) || !isChosen && quantization == "" && i.MayUseSome(key)
}

// MayChangeJob reports whether an identity may pause, resume and cancel a download that it may see: its own, or, for an
// administrator, any. A download without an owner may be changed by every identity that may use all models.
func (i *Identity) MayChangeJob(j fetch.Job) bool {
	if i == nil || i.May(ScopeAdmin) || i.IsNode() { // another node has decided it
		return true
	}
	if j.Owner == "" {
		return len(i.Models) == 0
	}
	return j.Owner == i.Owner
}
