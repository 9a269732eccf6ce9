package manage

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/catalog/fetch"
	"github.com/lmcaddy/lmcaddy/catalog/hub"
)

// In a cluster, the downloads of all nodes are listed by each, and each takes what is to be done with them. A node sends another more of
// its jobs than clients, by which that one decides who may see and change them.

// peerJobs returns the jobs of the other nodes that the request's identity may see, and which nodes haven't told theirs. A node that asks
// for another is told of this one alone.
func peerJobs(c *endpoint.Call) (jobs []downloadJob, silent []string) {
	if !c.Node.Cluster.Is() || c.Identity.IsNode() {
		return nil, nil
	}
	for _, answer := range c.Node.Remotes.AskPeers(c.Request.Context(), "/api/v1/models/download") {
		var list jobList
		if answer.Status != http.StatusOK || json.Unmarshal(answer.Body, &list) != nil {
			silent = append(silent, answer.Node)
			continue
		}
		for _, j := range list.Jobs {
			if j.Node = answer.Node; !c.IsRestricted() || slices.ContainsFunc(j.Keys, c.Identity.MayUse) {
				jobs = append(jobs, j)
			}
		}
	}
	return jobs, silent
}

// peerJob returns the job of another node with an id, which the request's identity may see.
func peerJob(c *endpoint.Call, id string) (j downloadJob, ok bool) {
	jobs, _ := peerJobs(c)
	i := slices.IndexFunc(jobs, func(j downloadJob) bool { return j.ID == id })
	if i < 0 {
		return downloadJob{}, false
	}
	return jobs[i], true
}

func asShown(c *endpoint.Call, j downloadJob) downloadJob {
	j.Keys = nil
	if !c.IsAdmin() {
		j.Owner = ""
	}
	return j
}

// changePeers has another node pause, resume or cancel its job; empty: nothing is done with it. isKnown is false if no node has it.
func changePeers(c *endpoint.Call, change string) (isKnown bool, _ error) {
	j, ok := peerJob(c, c.Param)
	if !ok {
		return false, nil
	}
	if change == "" {
		return true, c.Answer(asShown(c, j))
	}
	if !c.Identity.MayChangeJob(fetch.Job{Download: fetch.Download{ID: j.ID, Owner: j.Owner}}) {
		return true, endpoint.NotYourJob(j.ID)
	}
	answer := c.Node.Remotes.AskPeer(c.Request.Context(), j.Node, http.MethodPost, "/api/v1/models/download/"+j.ID+"/"+change)
	var changed downloadJob
	switch {
	case answer.Status == 0:
		return true, &hub.Error{
			Kind: hub.Internal, Message: "The node " + j.Node + ", which has the download " + j.ID + ", doesn't answer. Try again later.",
		}
	case answer.Status != http.StatusOK:
		c.WriteJSON(answer.Status, answer.Body) // an error in the same words
		return true, nil
	case json.Unmarshal(answer.Body, &changed) != nil:
		return true, &hub.Error{Kind: hub.Internal, Message: "The node " + j.Node + " has given an answer that can't be read."}
	}
	return true, c.Answer(asShown(c, changed))
}

// peerEvents streams the events of a job of another node. isKnown is false if no node has it.
func peerEvents(c *endpoint.Call) (isKnown bool, _ error) {
	j, ok := peerJob(c, c.Param)
	if !ok {
		return false, nil
	}
	if c.IsRestricted() {
		c.Running.Uses(j.Keys[slices.IndexFunc(j.Keys, c.Identity.MayUse)])
	}
	ctx, cancel := endpoint.UntilExit(c) // the stream would delay the end of the server
	defer cancel()
	events, err := c.Node.Remotes.OpenPeer(ctx, j.Node, "/api/v1/models/download/"+j.ID+"/events")
	if err != nil {
		return true, err
	}
	defer events.Close()
	s := c.NewStream()
	defer s.Close()
	if c.Request.Method == http.MethodHead {
		s.Send([]byte(endpoint.Comment)) // sends the header
		return true, nil
	}
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		var event downloadEvent
		if !ok || json.Unmarshal(data, &event) != nil {
			continue
		}
		event.Job = asShown(c, event.Job)
		frame, err := event.frame()
		if err != nil {
			return true, err
		}
		s.Send(frame)
	}
	return true, c.Request.Context().Err() // a stream that ends early is opened again
}
