package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/randommodel"
)

// The targets: tokens per second and times of loads, to those by hand or alone.
const (
	leastRate = 0.98
	mostLoad  = 1.1
)

// rounds is how often a load is measured.
const rounds = 3

// findGPU says what is found, with the driver and without it.
func findGPU(m *machine) {
	m.add("GPUs that the engine lists", strings.Join(append([]string{orNone(m.gpu)}, m.others...), ", "), "", noTarget)
	with := m.doctor()
	m.add("`lmcaddy doctor`", with, "", noTarget)
	without := m.doctor("CUDA_VISIBLE_DEVICES=", "HIP_VISIBLE_DEVICES=", "ROCR_VISIBLE_DEVICES=", "VK_DRIVER_FILES=/nonexistent", "VK_ICD_FILENAMES=/nonexistent")
	m.add("`lmcaddy doctor`, the driver hidden", without, "says so", verdictOf(without != with))
}

// doctor returns what lmcaddy doctor says of GPUs and the sandbox, with additional variables.
func (m *machine) doctor(environment ...string) string {
	cmd := m.command("doctor", "--json")
	cmd.Env = append(cmd.Env, environment...)
	out, _ := cmd.Output() // it fails if anything is wrong, such as that no server runs
	var lines []string
	for _, f := range gjson.ParseBytes(out).Get("findings").Array() {
		if check := f.Get("check").Str; check == "gpu" || check == "sandbox" {
			lines = append(lines, fmt.Sprintf("%s: %s: %s %s", check, f.Get("status").Str, f.Get("message").Str, f.Get("advice").Str))
		}
	}
	return orNone(strings.Join(lines, "\n"))
}

// speed compares loads and tokens per second with those of an engine that was started by hand.
func speed(m *machine, name, engine string) {
	s := m.start(m.settings(""), engine)
	defer s.stop()
	first, _ := s.load(m.one())
	in := m.instance(m.one())
	m.found(name, in)
	l := launchOf(in.Get("pid").Int())
	var ours, byHand []time.Duration
	for range rounds {
		s.unload(m.one())
		hand, took := m.byHand(l)
		hand.stop()
		byHand = append(byHand, took)
		took, _ = s.load(m.one())
		ours = append(ours, took)
	}
	m.add("the first load, "+name, seconds(first)+" (CUDA's code is compiled, unless it is in the home)", "", noTarget)
	m.compare("load, "+name, "s", "by hand", median(byHand).Seconds(), median(ours).Seconds(), "at most", mostLoad)

	hand, _ := m.byHand(l)
	defer hand.stop()
	var rate, rateByHand []float64
	for round := range 2*rounds + 1 { // in turn, once before it counts
		b, a := hand.chat(m.one(), "Hello", m.tokens), s.chat(m.one(), "Hello", m.tokens)
		if round > 0 {
			rate, rateByHand = append(rate, a.rate), append(rateByHand, b.rate)
		}
	}
	m.compare(fmt.Sprintf("%d tokens, one client, %s", m.tokens, name), "tokens/s", "by hand", median(rateByHand), median(rate), "at least", leastRate)
}

// found says which GPUs lmcaddy has found, and where a model is.
func (m *machine) found(name string, in gjson.Result) {
	ps := m.ps()
	var gpus, faults []string
	for _, d := range ps.Get(`devices.#(kind=="gpu")#.name`).Array() {
		gpus = append(gpus, d.Str)
	}
	for _, f := range ps.Get("faults").Array() {
		faults = append(faults, f.Str)
	}
	m.add("GPUs in lmcaddy, "+name, fmt.Sprintf("%s; sandbox: %s; the model is on: %s; faults: %s", orNone(strings.Join(gpus, ", ")), orNone(in.Get("sandbox").Str),
		place(in), orNone(strings.Join(faults, " "))), "on the GPU", verdictOf(m.gpu != "" && in.Get("placement").Str == m.gpu))
}

// alone is what a model takes of the GPU that it has for itself, and how fast it is.
type alone struct {
	claim int64 // bytes
	load  time.Duration
	rate  float64
}

// settings are lines that give all models one slot, and them the memory of one GPU, or so much of it.
func (m *machine) settings(budget string) string {
	var lines string
	if budget != "" {
		lines = fmt.Sprintf("gpu_memory %s %s\n", m.gpu, budget)
	}
	for _, name := range m.others {
		lines += "gpu_memory " + name + " 1MiB\n"
	}
	for key, context := range map[string]int{m.one(): m.context, m.another(): m.context, m.long(): randommodel.LongContext} {
		lines += fmt.Sprintf("model %s {\ncontext_length %d\nparallel 1\n}\n", key, context)
	}
	return lines
}

// fastest is the best rate of some answers.
func (s *server) fastest(model string) (best float64) {
	for range rounds {
		best = max(best, s.chat(model, "Hello", s.m.tokens).rate)
	}
	return best
}

// measureAlone measures the second of the two models.
func (m *machine) measureAlone() {
	s := m.start(m.settings(""), "")
	defer s.stop()
	s.load(m.another()) // so that its file is cached
	var loads []time.Duration
	for range rounds {
		s.unload(m.another())
		took, _ := s.load(m.another())
		loads = append(loads, took)
	}
	m.alone = alone{m.device().Get("claimed_bytes").Int(), median(loads), s.fastest(m.another())}
}

// twoModels loads two models in turn that don't fit on the GPU together.
func twoModels(m *machine) {
	if m.gpu == "" {
		check(errors.New("there is no GPU"))
	}
	m.measureAlone()
	s := m.start(m.settings(fmt.Sprintf("%dMiB", (m.alone.claim+m.weights(m.one())/2)>>20)), "")
	defer s.stop()
	var loads []time.Duration
	for range rounds {
		s.load(m.one())
		took, _ := s.load(m.another())
		loads = append(loads, took)
	}
	m.compare("a load that evicts an idle model", "s", "alone", m.alone.load.Seconds(), median(loads).Seconds(), "at most", mostLoad)
	second, first := m.instance(m.another()), m.instance(m.one())
	figure := "the second is on: " + place(second)
	if first.Exists() {
		figure += "; the first is on: " + place(first)
	}
	m.add("where both models are then", figure, "the first is gone", verdictOf(!first.Exists() && place(second) == m.gpu))
	m.compare("tokens per second of the second", "tokens/s", "alone", m.alone.rate, s.fastest(m.another()), "at least", leastRate)
}

// tooLarge loads a model for which the GPU has room for half its weights.
func tooLarge(m *machine) {
	if m.alone.claim == 0 {
		check(errors.New("it isn't known what the model takes alone"))
	}
	s := m.start(m.settings(fmt.Sprintf("%dMiB", (m.alone.claim-m.weights(m.another())/2)>>20)), "")
	defer s.stop()
	_, loaded := s.load(m.another())
	in, said := m.instance(m.another()), loaded.Get("placement").Str
	rate := s.chat(m.another(), "Hello", max(1, m.tokens/8)).rate
	m.add("a model of which half the weights fit", fmt.Sprintf("the load's answer: %s; %.3g tokens/s, alone %.3g", orNone(said), rate, m.alone.rate),
		"split, and said", verdictOf(said != "" && said == place(in) && in.Get("split").Bool()))
}

// returns has a conversation return twice after its model was unloaded.
func returns(m *machine) {
	s := m.start(m.settings(""), "")
	defer s.stop()
	s.load(m.long())
	const few = 40
	sample := s.chat(m.long(), words(few), 1) // the model's first answer, too
	text := words(int(few * int64(m.prompt) / sample.prompt))
	for _, visit := range []string{"a long prompt", "the same after an unload and a load", "and once more"} {
		if !m.instance(m.long()).Exists() {
			s.load(m.long())
		}
		a, before := s.chat(m.long(), text, 1), s.metric("lm_warm_saves_total", "")
		left := s.unload(m.long())
		m.add(visit, fmt.Sprintf("%d tokens, %d of them cached: %s; unloaded in %s, which saved %d states; all that is saved: %s", a.prompt, a.cached, seconds(a.took),
			seconds(left), s.metric("lm_warm_saves_total", "")-before, size(s.metric("lm_warm_bytes", ""))), "", noTarget)
	}
	saves, restores := s.metric("lm_warm_saves_total", ""), s.metric("lm_warm_restores_total", "")
	m.add("saved and restored", fmt.Sprintf("%d and %d states; measured: %s", saves, restores, orNone(s.get("/api/v1/warm").Get("rates").Raw)),
		"nothing is saved that isn't read", verdictOf(saves == 0 || restores > 0))
}

// words returns words that nobody has said before.
func words(n int) string {
	var b strings.Builder
	for range n {
		fmt.Fprintf(&b, "%d ", rand.IntN(1000)) //nolint:gosec // no secret
	}
	return b.String()
}

// held has another program take nearly all of the GPU that is free while a model is idle on it.
func held(m *machine) {
	if m.gpu == "" {
		check(errors.New("there is no GPU"))
	}
	s := m.start(m.settings(""), "")
	defer s.stop()
	s.load(m.one())
	l, d := launchOf(m.instance(m.one()).Get("pid").Int()), m.device()
	const process = 700 << 20 // bytes that a process takes beside its cache, roughly
	rest := d.Get("free_bytes").Int() - d.Get("total_bytes").Int()/50 - process
	own := slices.Index(l.args, "-m")
	if rest <= 0 || own < 0 {
		check(fmt.Errorf("an engine can't be started by %q to take all but a fiftieth of the GPU, of which %s are free", l.args[0], size(d.Get("free_bytes").Int())))
	}
	l.args = append(l.args[:own:own], "-m", m.holderFile(), "--host", "", "-c", fmt.Sprint(rest/holderCache), "-np", "1", "-b", "64", "-ub", "64", "-fa", "on",
		"--device", m.gpu, "-ngl", "999", "--fit", "off", "--no-warmup")
	other, _ := m.byHand(l)
	defer other.stop()

	begin := time.Now()
	for m.instance(m.one()).Exists() && time.Since(begin) < 50*time.Second {
		time.Sleep(time.Second / 2)
	}
	took, isGone, evictions := time.Since(begin), !m.instance(m.one()).Exists(), s.metric("lm_evictions_total", `reason="gpu"`)
	figure := "it is still there after " + seconds(took)
	if !isGone {
		s.unload(m.one())
	} else {
		figure = fmt.Sprintf("it left after %s; evictions with the reason gpu: %d", seconds(took), evictions)
	}
	m.add("another program takes the GPU beside an idle model", figure, "it leaves", verdictOf(isGone && evictions == 1))
	d = m.device()
	_, loaded := s.load(m.one())
	m.add("a load beside that program", fmt.Sprintf("ps says that others hold %s of %s; the load's answer: %s; %.3g tokens/s", size(d.Get("held_bytes").Int()),
		size(d.Get("total_bytes").Int()), orNone(loaded.Get("placement").Str), s.chat(m.one(), "Hello", max(1, m.tokens/8)).rate), "what is held is seen",
		verdictOf(d.Get("held_bytes").Int() > 0))
}
