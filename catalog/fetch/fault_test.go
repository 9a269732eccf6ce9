package fetch

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog/hub"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakehub"
)

// stalling makes a stall noticed soon. On a busy machine there may be false alarms.
func stalling(w *world) {
	w.tune.Stall, w.tune.attempts, w.tune.Tries = 2*time.Second, 1000, 8
}

// fewTries makes a job fail soon.
func fewTries(w *world) { w.tune.attempts = 2 }

// oneLane downloads in one stream.
func oneLane(w *world) { w.opts.Parallel = 1 }

// TestFault_OfAFile tests each fault of a hub, with parallel ranges and with one stream.
func TestFault_OfAFile(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	retryAfter := func(value string) map[string]string { return map[string]string{"Retry-After": value} }
	for name, c := range map[string]struct {
		fault  fakehub.Fault
		prep   func(*world)
		reason string // why it fails; empty: it completes
	}{
		"the connection breaks once":            {fault: fakehub.Fault{Cut: mib / 10, Times: 1}},
		"the connection breaks often":           {fault: fakehub.Fault{Cut: mib / 10, Times: 20}},
		"the connection breaks before a byte":   {fault: fakehub.Fault{CutAtOnce: true, Times: 3}},
		"the connection always breaks":          {fault: fakehub.Fault{CutAtOnce: true}, prep: fewTries, reason: "Given up after 3 tries without a byte."},
		"ranges are ignored":                    {fault: fakehub.Fault{NoRanges: true}},
		"ranges are ignored after a while":      {fault: fakehub.Fault{NoRanges: true, Skip: 2}},
		"ranges are ignored, it breaks":         {fault: fakehub.Fault{NoRanges: true, Cut: mib, Times: 2}},
		"ranges are ignored, it always breaks":  {fault: fakehub.Fault{NoRanges: true, Cut: mib}, prep: fewTries, reason: "Given up after"},
		"no length is told":                     {fault: fakehub.Fault{NoRanges: true, Chunked: true}},
		"no length of ranges is told":           {fault: fakehub.Fault{Chunked: true}},
		"it is longer than listed":              {fault: fakehub.Fault{Longer: 5}, reason: "but its list says 1368121: the file has changed"},
		"it is longer, and doesn't say so":      {fault: fakehub.Fault{Longer: 5, NoRanges: true, Chunked: true}, reason: "sends more than the 1368121 bytes"},
		"it is shorter than listed":             {prep: func(w *world) { w.hub.Lie(tiny, tinyFile, tinySize+5) }, reason: "but its list says 1368126"},
		"the list's checksum is another":        {prep: func(w *world) { w.hub.LieSum(tiny, tinyFile, strings.Repeat("ab", 32)) }, reason: "but the hub says abab"},
		"a byte is damaged":                     {fault: fakehub.Fault{Damage: 99, Times: 1}, reason: "damaged on the way, or the hub is wrong"},
		"the tags change":                       {fault: fakehub.Fault{OtherTags: true}},
		"the tags change, and it breaks":        {fault: fakehub.Fault{OtherTags: true, Cut: mib / 10}},
		"there are no tags, and it breaks":      {fault: fakehub.Fault{NoTags: true, Cut: mib / 10, Times: 5}},
		"the tags are weak, and it breaks":      {fault: fakehub.Fault{WeakTags: true, Cut: mib / 10, Times: 5}},
		"it stalls once":                        {fault: fakehub.Fault{Stall: mib / 10, Times: 1}, prep: stalling},
		"it stalls before the answer":           {fault: fakehub.Fault{StallAtOnce: true, Times: 1}, prep: stalling},
		"it always stalls":                      {fault: fakehub.Fault{StallAtOnce: true}, prep: func(w *world) { stalling(w); fewTries(w) }, reason: "no more bytes arrived for 2s"},
		"it redirects to http elsewhere":        {fault: fakehub.Fault{Redirect: "http://192.0.2.1*"}, reason: "only https is followed"},
		"it redirects in circles":               {fault: fakehub.Fault{Redirect: "*"}, prep: fewTries, reason: "too many redirects"},
		"400":                                   {fault: fakehub.Fault{Path: "/resolve/", Status: http.StatusBadRequest}, reason: "does it speak the API of huggingface.co?"},
		"401":                                   {fault: fakehub.Fault{Path: "/resolve/", Status: http.StatusUnauthorized}, reason: "HF_TOKEN"},
		"403, gated":                            {fault: fakehub.Fault{Path: "/resolve/", Status: http.StatusForbidden, Header: map[string]string{"X-Error-Code": "GatedRepo"}}, reason: "it is gated. Accept its terms at http"},
		"403, with a token":                     {fault: fakehub.Fault{Path: "/resolve/", Status: http.StatusForbidden}, prep: withToken, reason: "the configured token has no access to it"},
		"401, with a token":                     {fault: fakehub.Fault{Path: "/resolve/", Status: http.StatusUnauthorized}, prep: withToken, reason: "Make a new one at the hub"},
		"404":                                   {fault: fakehub.Fault{Path: "/resolve/", Status: http.StatusNotFound}, reason: "there is no such model, or no such file"},
		"416":                                   {fault: fakehub.Fault{Status: http.StatusRequestedRangeNotSatisfiable}, reason: "the file is shorter than it was"},
		"429 once":                              {fault: fakehub.Fault{Status: http.StatusTooManyRequests, Header: retryAfter("1"), Times: 1}},
		"429 for a day":                         {fault: fakehub.Fault{Path: "/resolve/", Status: http.StatusTooManyRequests, Header: retryAfter("86400")}, reason: "wants 24h0m0s of rest"},
		"429 again and again":                   {fault: fakehub.Fault{Status: http.StatusTooManyRequests}, prep: fewTries, reason: "too many requests"},
		"500 a few times":                       {fault: fakehub.Fault{Status: http.StatusInternalServerError, Times: 3}},
		"500 always":                            {fault: fakehub.Fault{Status: http.StatusInternalServerError}, prep: fewTries, reason: "answered 500 Internal Server Error"},
		"503 with Retry-After":                  {fault: fakehub.Fault{Status: http.StatusServiceUnavailable, Header: retryAfter("1"), Times: 1}},
		"the file server's address has expired": {fault: fakehub.Fault{Path: "/cdn/", Status: http.StatusForbidden, Times: 1}},
	} {
		for lanes, set := range map[string]func(*world){"parallel": nil, "one stream": oneLane} {
			t.Run(name+"/"+lanes, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				for _, prep := range []func(*world){set, c.prep} {
					if prep != nil {
						prep(w)
					}
				}
				fault := c.fault
				if fault.Path == "" {
					fault.Path = "/cdn/"
				}
				w.hub.Fault(fault)
				w.endsWith(w.start(tiny), c.reason)
			})
		}
	}
}

func withToken(w *world) { w.opts.Hubs[0].Token = "hf_secret" }

// endsWith checks that a job is completed with the right content, or fails with a reason and leaves no model.
func (w *world) endsWith(job Job, reason string) {
	w.Helper()
	if reason == "" {
		w.completes(job)
		w.holds(tiny+"/"+tinyFile, fakehub.Random(1, tinySize))
		return
	}
	job = w.await(job.ID, Job.Ended)
	if job.State != Failed || !strings.Contains(job.Reason, reason) {
		w.Errorf("it is %s: %s", job.State, job.Reason)
	}
	for _, f := range w.files() {
		if strings.HasSuffix(f, ".gguf") {
			w.Errorf("%s is there", f)
		}
	}
}

// TestFault_AJobThatFailedGoesOn: the bytes already downloaded aren't downloaded again.
func TestFault_AJobThatFailedGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tune.attempts = 1
	oneLane(w)
	w.hub.Fault(fakehub.Fault{Path: "/cdn/", Cut: 1 << 20, Times: 1})
	w.hub.Fault(fakehub.Fault{Path: "/cdn/", CutAtOnce: true})
	job := w.start(tiny)
	failed := w.await(job.ID, Job.Ended)
	if failed.State != Failed || failed.DownloadedBytes == 0 || failed.BytesPerSecond != 0 {
		t.Fatalf("it is %+v", failed)
	}
	kept := w.checkpointed(tiny+"/"+tinyFile, fakehub.Random(1, tinySize))
	w.hub.Mend()
	w.hub.Quiet(t)
	w.hub.Forget()
	again, err := w.jobs.Resume(job.ID)
	if err != nil || again.State != Downloading || again.Reason != "" {
		t.Fatalf("resumed: %+v, %v", again, err)
	}
	w.completes(job)
	w.fetchedNothingOf(kept)
	w.holds(tiny+"/"+tinyFile, fakehub.Random(1, tinySize))
}

// TestFault_TheFileChangesAmidTheDownload: the new version is downloaded, never a mixture of both.
func TestFault_TheFileChangesAmidTheDownload(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*world){"parallel": func(*world) {}, "one stream": oneLane} {
		for size, bytes := range map[string]int64{"of the same size": tinySize, "shorter": tinySize / 3, "longer": tinySize * 2} {
			t.Run(name+", "+size, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				set(w)
				w.hub.Fault(fakehub.Fault{Path: "/cdn/", Stall: 100 << 10})
				job := w.start(tiny)
				w.await(job.ID, func(j Job) bool { return j.DownloadedBytes >= 100<<10 })
				changed := fakehub.Random(2, bytes)
				w.hub.Add(tiny, fakehub.Files{tinyFile: changed})
				w.hub.Mend()
				if done := w.completes(job); done.TotalBytes != bytes {
					t.Errorf("it has %d bytes", done.TotalBytes)
				}
				w.holds(tiny+"/"+tinyFile, changed)
			})
		}
	}
}

// TestFault_TheFileChangesButTheListDoesNot: the checksum of the list decides.
func TestFault_TheFileChangesButTheListDoesNot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hub.Fault(fakehub.Fault{Path: "/cdn/", Stall: 100 << 10})
	job := w.start(tiny)
	w.await(job.ID, func(j Job) bool { return j.DownloadedBytes >= 100<<10 })
	w.hub.Replace(tiny, tinyFile, fakehub.Random(2, tinySize))
	w.hub.Mend()
	w.endsWith(job, "but the hub says "+fakehub.Sum(fakehub.Random(1, tinySize)))
}

// TestFault_AllPartsRest: when the hub asks one range request to wait, the others wait as well, although they have work left.
// Requests that have been sent may still arrive.
func TestFault_AllPartsRest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hub.Add(tiny, fakehub.Files{tinyFile: fakehub.Random(1, 4<<20)})
	w.hub.Fault(fakehub.Fault{Path: "/cdn/", Skip: 1, Times: 1, Status: http.StatusTooManyRequests, Header: map[string]string{"Retry-After": "3"}})
	w.hub.Fault(fakehub.Fault{Path: "/cdn/", BytesPerSecond: 1 << 20})
	w.completes(w.start(tiny))
	var last time.Time
	rested := false
	all := w.hub.Requests()
	slices.SortFunc(all, func(a, b fakehub.Request) int { return a.At.Compare(b.At) })
	for _, r := range all {
		rested = rested || (!last.IsZero() && r.At.Sub(last) >= time.Second)
		last = r.At
	}
	if !rested {
		t.Error("the hub was asked all the time")
	}
}

// TestFault_AFileGoesAway: the job fails.
func TestFault_AFileGoesAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hub.Fault(fakehub.Fault{Path: "/cdn/", Stall: 100 << 10})
	job := w.start(tiny)
	w.await(job.ID, func(j Job) bool { return j.DownloadedBytes > 0 })
	w.hub.Add(tiny, fakehub.Files{"tiny-Q8_0.gguf": fakehub.Random(2, 100)})
	w.hub.Mend()
	w.endsWith(job, "its publisher has taken it away")
}

// TestFault_BeforeTheJob: invalid answers of a hub are reported at once, and no job is started.
func TestFault_BeforeTheJob(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault  fakehub.Fault
		prep   func(*world)
		model  string // below the hub's URL
		kind   hub.Kind
		reason string
	}{
		"no such repository":   {model: "acme/none", kind: hub.ModelNotFound, reason: "there is no such model"},
		"no such revision":     {model: tiny + "/tree/v2", kind: hub.ModelNotFound, reason: "there is no such model, or no such file or revision"},
		"private":              {prep: func(w *world) { w.hub.RequireToken("hf_x") }, model: tiny, kind: hub.Denied, reason: "it is gated. Accept its terms"},
		"a wrong token":        {prep: func(w *world) { w.hub.RequireToken("hf_x"); withToken(w) }, model: tiny, kind: hub.Denied, reason: "Make a new one"},
		"no JSON":              {fault: fakehub.Fault{Path: "/tree/", Redirect: "/acme/tiny-GGUF/resolve/main/README.md#"}, model: tiny, kind: hub.HubFailed, reason: "doesn't answer in the way of a hub"},
		"always 500":           {fault: fakehub.Fault{Path: "/api/", Status: 500}, model: tiny, kind: hub.HubFailed, reason: "try again later"},
		"429":                  {fault: fakehub.Fault{Path: "/api/", Status: 429, Header: map[string]string{"Retry-After": "30"}}, model: tiny, kind: hub.Busy, reason: "too many requests"},
		"the hub is down":      {prep: func(w *world) { w.hub.Kill() }, model: tiny, kind: hub.HubFailed, reason: "Check the network and the hub's URL"},
		"a name leads outside": {prep: withFile("../../evil.gguf"), model: tiny, kind: hub.Unsafe, reason: `the name ".." leads elsewhere`},
		"an absolute name":     {prep: withFile("/etc/evil.gguf"), model: tiny, kind: hub.Unsafe, reason: `the name "" leads elsewhere`},
		"a backslash":          {prep: withFile(`..\evil.gguf`), model: tiny, kind: hub.Unsafe, reason: "means something to a system"},
		"a drive":              {prep: withFile("C:evil.gguf"), model: tiny, kind: hub.Unsafe, reason: "means something to a system"},
		"a device":             {prep: withFile("aux.gguf"), model: tiny, kind: hub.Unsafe, reason: "is a device's"},
		"control characters":   {prep: withFile("a\x1b[31m.gguf"), model: tiny, kind: hub.Unsafe, reason: "control characters"},
		"a negative size":      {prep: func(w *world) { w.hub.Lie(tiny, tinyFile, -5) }, model: tiny, kind: hub.HubFailed, reason: "has -5 bytes"},
		"no models":            {prep: func(w *world) { w.hub.Add(tiny, fakehub.Files{"a.txt": fakehub.Text("x")}) }, model: tiny, kind: hub.ModelNotFound, reason: "holds no model"},
		"a part is missing":    {prep: withOnly("a-Q4_K_M-00001-of-00002.gguf"), model: tiny, kind: hub.HubFailed, reason: "lacks parts of Q4_K_M"},
		"the disk is full":     {prep: func(w *world) { w.opts.Free = func(string) (int64, error) { return 70 << 20 / 20, nil } }, model: tiny, kind: hub.NoSpace, reason: "3.7 MB are free, of which 67 MB have to stay free. Free some space"},
		"the memory is small":  {prep: func(w *world) { w.opts.Memory = func() int64 { return 1 << 20 } }, model: tiny, kind: hub.TooLarge, reason: "There are: Q4_K_M (1.4 MB)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if c.prep != nil {
				c.prep(w)
			}
			if c.fault.Path != "" {
				w.hub.Fault(c.fault)
			}
			job, err := w.open().Start(t.Context(), Request{Model: w.hub.URL + "/" + c.model})
			if kindOf(err) != c.kind || err == nil || !strings.Contains(err.Error(), c.reason) {
				t.Errorf("%+v, kind %d: %v", job, kindOf(err), err)
			}
			if c.kind == hub.Busy && hub.AsError(err).RetryAfter != 30*time.Second {
				t.Errorf("to be tried again after %v", hub.AsError(err).RetryAfter)
			}
			if all := w.jobs.List(); len(all) > 0 {
				t.Errorf("there are jobs: %+v", all)
			}
			if files := w.files(); len(files) > 0 {
				t.Errorf("there are files: %v", files)
			}
		})
	}
}

// withFile adds a file to the repository.
func withFile(name string) func(*world) {
	return func(w *world) {
		w.hub.Add(tiny, fakehub.Files{name: fakehub.Random(1, 10), tinyFile: fakehub.Random(1, tinySize)})
	}
}

// withOnly makes a file the repository's only one.
func withOnly(name string) func(*world) {
	return func(w *world) { w.hub.Add(tiny, fakehub.Files{name: fakehub.Random(1, 10)}) }
}
