package endpoint

import (
	"github.com/lmcaddy/lmcaddy/catalog/fetch"
	"github.com/lmcaddy/lmcaddy/translate"
)

// ModelNotAllowed is the error of a download of a model that the identity may not use, by the name that the client gave.
func ModelNotAllowed(name string) *translate.Error {
	return &translate.Error{
		Kind: translate.KindForbidden, Code: "model_not_allowed", Param: "model",
		Message: "This API token may not use the model " + Quoted(name) + ".",
	}
}

// FetchRequest is the request for a download of a model, by the name that the client gave and the one that hubs know.
func FetchRequest(c *Call, name, model, quantization string) fetch.Request {
	return fetch.Request{
		Model: model, Quantization: quantization, Owner: c.Owner(),
		May: MayFetch(c, name),
		MayResume: func(j fetch.Job) bool {
			return CheckChangesJob(c, j) == nil || j.State == fetch.Failed && MaySeeJob(c, j)
		},
	}
}

// MaySeeJob reports whether the request's identity may know of a job, or of files that need none.
func MaySeeJob(c *Call, j fetch.Job) bool {
	_, ok := c.Node.JobKey(c.Request.Context(), c.Identity, j)
	return ok
}

// CheckSeesJob returns an error if the request's identity may not know of a job: the same as if there were no such job.
func CheckSeesJob(c *Call, j fetch.Job) error {
	if !MaySeeJob(c, j) {
		return fetch.NoJob(j.ID)
	}
	return nil
}

// CheckChangesJob returns an error if the request's identity may not pause, resume and cancel a job.
func CheckChangesJob(c *Call, j fetch.Job) error {
	if err := CheckSeesJob(c, j); err != nil || c.Identity.MayChangeJob(j) {
		return err
	}
	return NotYourJob(j.ID)
}

// NotYourJob is the error of a change of another's download.
func NotYourJob(id string) *translate.Error {
	return &translate.Error{
		Kind: translate.KindForbidden, Code: "not_your_download",
		Message: "The download " + id + " is another's: only who began it, or an administrator, may change it.",
	}
}

// MayFetch returns a function that says whether the identity may download a model, which it names so, in a quantization.
func MayFetch(c *Call, name string) func(folder, quantization string, isChosen bool) error {
	return func(folder, quantization string, isChosen bool) error {
		if !c.Identity.MayFetch(folder, quantization, isChosen) {
			return ModelNotAllowed(name)
		}
		return nil
	}
}
