package ollama

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/text"
	"github.com/lmcaddy/lmcaddy/catalog/fetch"
	"github.com/lmcaddy/lmcaddy/catalog/hub"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/ollama"
)

// pull is POST /api/pull. A download goes on if the client disconnects; the next pull joins it.
func pull(c *endpoint.Call) error {
	body, name, err := text.BodyAndModel(c, nameFields...)
	if err != nil {
		return err
	}
	streams, bad := body.BoolOr("stream", true)
	if bad != nil {
		return bad
	}
	jobs, err := c.Node.Downloads.Jobs()
	if err != nil {
		return err
	}
	id, known := hubName(name)
	if !known {
		if _, err := c.Find(name); err != nil {
			return ollama.NotPulled(endpoint.Presentable(name, endpoint.MaxParam))
		}
		return pulled(c, streams, nil) // it is here, and nothing is known of where it came from
	}
	job, err := endpoint.StartDownload(c, jobs, name, endpoint.FetchRequest(c, name, id, ""))
	if err != nil {
		return err
	}
	if job.ID == "" { // it is on disk
		return pulled(c, streams, nil)
	}
	updates, stop, err := jobs.Subscribe(job.ID)
	if err != nil {
		return err
	}
	defer stop()
	return pulled(c, streams, updates)
}

// hubName is the name for downloads of a model's name in Ollama. A plain name has one only if the built-in list has it.
func hubName(name string) (id string, ok bool) {
	if id, ok := node.LibraryModel(name); ok {
		return id, true
	}
	n := ollama.ParseName(name)
	switch {
	case strings.Contains(name, "://") && !n.IsOfHub():
		return name, true
	case n.IsPlain(), n.Namespace == "", !n.IsOfHub() && n.Host != "":
		return "", false
	}
	id = n.Namespace + "/" + n.Model
	if kind, quantization := n.Split(); kind != "" || quantization != "" {
		id += "@" + n.Tag
	}
	return id, true
}

// pulled tells of a download until it ends; nil: the model is here.
func pulled(c *endpoint.Call, streams bool, updates <-chan fetch.Job) error {
	tell := func(ollama.Progress) {}
	if streams {
		s := c.NewStream()
		defer s.Close()
		tell = func(p ollama.Progress) { s.Send(p.AppendLine(nil)) }
	}
	tell(ollama.Progress{Status: "pulling manifest"})
	for updates != nil {
		select {
		case <-c.Request.Context().Done():
			return c.Request.Context().Err()
		case <-c.Site.Exiting:
			return endpoint.ShuttingDown("The server is shutting down. The download goes on when it runs again.")
		case job, ok := <-updates:
			switch {
			case !ok, job.State == fetch.Completed:
				updates = nil
			case job.State == fetch.Paused:
				const message = "The download is paused. Whoever began it can pull the model again to continue."
				return &translate.Error{Kind: translate.KindConflict, Message: message}
			case job.State == fetch.Failed:
				return endpoint.FetchError(c, &hub.Error{Kind: job.Kind, Message: job.Reason})
			default:
				tell(pulling(job))
			}
		}
	}
	for _, status := range []string{"verifying sha256 digest", "writing manifest"} {
		tell(ollama.Progress{Status: status})
	}
	if !streams {
		return c.Answer(ollama.Progress{Status: "success"})
	}
	tell(ollama.Progress{Status: "success"})
	return nil
}

// pulling is the progress of a download, all of whose files are one to clients.
func pulling(j fetch.Job) ollama.Progress {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s\n%s", j.Hub, j.Repo, j.Revision, strings.Join(j.Files, "\n")))
	digest := hex.EncodeToString(sum[:])
	return ollama.Progress{Status: "pulling " + digest[:12], Digest: "sha256:" + digest, Total: j.TotalBytes, Completed: j.DownloadedBytes}
}
