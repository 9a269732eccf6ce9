package ollama

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/text"
	"github.com/lmcaddy/lmcaddy/catalog/fetch"
	"github.com/lmcaddy/lmcaddy/catalog/hub"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/ollama"
)

// create is POST /api/create: a name for a model, with defaults. What is made under that name before is replaced.
func create(c *endpoint.Call) error {
	body, name, err := text.BodyAndModel(c, nameFields...)
	if err != nil {
		return err
	}
	asked, bad := ollama.ParseCreate(body)
	fields := body.Fields()
	streams := fields.BoolOr("stream", true)
	if bad = cmp.Or(bad, fields.Err); bad != nil {
		return bad
	}
	if err := saveCustom(c, asked.From, name, asked.Defaults); err != nil {
		return err
	}
	if !streams {
		return c.Answer(ollama.Progress{Status: "success"})
	}
	s := c.NewStream()
	defer s.Close()
	for _, status := range []string{"using existing layer", "writing manifest", "success"} {
		s.Send(ollama.Progress{Status: status}.AppendLine(nil))
	}
	return nil
}

// copyModel is POST /api/copy: another name for a model, with the defaults of the first.
func copyModel(c *endpoint.Call) error {
	body, err := c.Body()
	if err != nil {
		return err
	}
	fields := body.Fields()
	source, destination := fields.Required("source"), fields.Required("destination")
	if fields.Err != nil {
		return fields.Err
	}
	if err := saveCustom(c, source, destination, nil); err != nil {
		return err
	}
	c.WriteJSON(http.StatusOK, nil)
	return nil
}

// saveCustom gives a model a name. Defaults are added to those that it has already.
func saveCustom(c *endpoint.Call, from, name string, defaults map[string]json.RawMessage) error {
	target, err := c.Find(from)
	if err != nil {
		return err
	}
	m := node.CustomModel{Name: ollama.Canonical(name), Model: target.Model.FullKey(), Defaults: node.Preset{}}
	if !ollama.IsValid(name) {
		return translate.Invalid("invalid_value", "model", "name "+endpoint.Quoted(name)+" is invalid: it may have letters, digits and _ "+
			". - in at most three parts, which / separates, and a tag after :")
	}
	if before, ok := c.Node.Names.Custom(from); ok {
		maps.Copy(m.Defaults, before.Defaults)
	}
	maps.Copy(m.Defaults, defaults)
	return c.Node.Names.SaveCustom(c.Request.Context(), m, mayReplace(c))
}

// mayReplace returns a function that refuses a name of a model that the request's identity may not use.
func mayReplace(c *endpoint.Call) func(before node.CustomModel) error {
	return func(before node.CustomModel) error {
		if c.Identity.MayUse(before.Model) {
			return nil
		}
		return node.IDTaken(before.Name)
	}
}

// deleteModel is DELETE /api/delete of a name that a client has given, or else of a model's files, after it was unloaded.
func deleteModel(c *endpoint.Call) error {
	_, name, err := text.BodyAndModel(c, nameFields...)
	if err != nil {
		return err
	}
	if custom, ok := c.Node.Names.Custom(name); ok && c.Identity.MayUse(custom.Model) {
		if err := c.Node.Names.DeleteCustom(custom.Name, mayReplace(c)); err != nil {
			return err
		}
		c.WriteJSON(http.StatusOK, nil)
		return nil
	}
	target, err := c.Find(name)
	key := target.Model.Key
	if broken, ok := errors.AsType[*node.BrokenModelError](err); ok {
		key = broken.Key
	} else if err == nil {
		err = text.UnloadModel(c, node.Target{Model: target.Model})
	}
	if key == "" || err != nil && key == target.Model.Key {
		return err
	}
	if _, err := endpoint.Remove(c, key, name); err != nil {
		return err
	}
	c.WriteJSON(http.StatusOK, nil)
	return nil
}

func refuse(message string) func(*endpoint.Call) error {
	return func(*endpoint.Call) error {
		return &translate.Error{Kind: translate.KindNotImplemented, Message: message}
	}
}

// pull is POST /api/pull. A download goes on if the client disconnects; the next pull joins it.
func pull(c *endpoint.Call) error {
	body, name, err := text.BodyAndModel(c, nameFields...)
	if err != nil {
		return err
	}
	fields := body.Fields()
	streams := fields.BoolOr("stream", true)
	if fields.Err != nil {
		return fields.Err
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
