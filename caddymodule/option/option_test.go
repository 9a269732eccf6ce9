package option_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/caddymodule/option"
	"github.com/lmcaddy/lmcaddy/internal/resource"
)

// lamp is a block with an option of each kind.
type lamp struct {
	Colour string           `json:"colour,omitempty" args:"red|green|blue" default:"red"`
	Watts  int              `json:"watts,omitempty" args:"<n>" min:"1" default:"40"`
	Dim    *int             `json:"dim,omitempty" args:"<n>" min:"0" default:"10"`
	On     *bool            `json:"on,omitempty" default:"on"`
	Loud   bool             `json:"loud,omitempty"`
	For    caddy.Duration   `json:"for,omitempty" args:"<duration>" default:"60m"`
	Fade   *caddy.Duration  `json:"fade,omitempty" args:"<duration>" otherwise:"never"`
	Store  option.Size      `json:"store,omitempty" args:"<size>" max:"1GiB"`
	Rooms  []string         `json:"rooms,omitempty" word:"room" args:"<name...>"`
	Wires  []string         `json:"wires,omitempty" args:"<name...>" repeat:"replaces"`
	Key    string           `json:"key,omitempty" args:"<key>" secret:"all"`
	ByRoom map[string]int   `json:"by_room,omitempty" word:"watts" args:"<room> <n>"`
	Bulbs  map[string]*bulb `json:"bulbs,omitempty" word:"bulb" args:"<name>"`
	Cords  []bulb           `json:"cords,omitempty" word:"cord"`
	Main   *bulb            `json:"main,omitempty" otherwise:"none"`
}

type bulb struct {
	URL  string `json:"url,omitempty" head:"<url>" secret:"password"`
	Size int    `json:"size,omitempty" args:"<n>" default:"3"`
}

func parse(text string) (*lamp, error) {
	l := new(lamp)
	d := caddyfile.NewTestDispenser("lamp {\n" + text + "\n}")
	d.Next()
	return l, option.Parse(d, "lamp", l)
}

func TestParse(t *testing.T) {
	t.Parallel()
	l, err := parse("colour blue\nwatts 5\nwatts hall 7\ndim 0\non off\nloud\nfor 2h\nfade 0\nstore 1MiB\nroom a b\nroom c\nwires x\nwires y z\nkey s3cret\n" +
		"bulb one {\nsize 1\n}\nbulb one {\nsize 2\n}\ncord https://a:s3cret@b {\nsize 4\n}\ncord https://c\nmain https://d")
	if err != nil {
		t.Fatal(err)
	}
	want := `{"colour":"blue","watts":5,"dim":0,"on":false,"loud":true,"for":7200000000000,"fade":0,"store":1048576,"rooms":["a","b","c"],"wires":["y","z"],` +
		`"key":"s3cret","by_room":{"hall":7},"bulbs":{"one":{"size":2}},"cords":[{"url":"https://a:s3cret@b","size":4},{"url":"https://c"}],"main":{"url":"https://d"}}`
	text, err := json.Marshal(l)
	if diff := cmp.Diff(want, string(text)); err != nil || diff != "" {
		t.Error(err, diff)
	}
	var shown []string
	for _, s := range option.Set(l) {
		shown = append(shown, s.Name+"="+s.Value)
	}
	wantShown := "colour=blue dim=0 fade=0 for=2h key=(set) loud=on main=https://d on=off room=a b c store=1.0 MB watts=5, hall 7 wires=y z"
	if diff := cmp.Diff(wantShown, strings.Join(shown, " ")); diff != "" {
		t.Error(diff)
	}
	if err := option.Check(l); err != nil {
		t.Error(err)
	}
}

func TestParse_Errors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"colour pink":               `colour: "pink" is not one of: red, green, blue, at Testfile:2`,
		"colour red blue":           "wrong argument count",
		"watts 0":                   `watts: "0" is not a whole number of at least 1`,
		"watts a b c":               "wrong argument count",
		"for 0":                     "for: it must be longer than 0",
		"fade -1s":                  `fade: "-1s" is not a time`,
		"store 2GiB":                `store: "2GiB" is not a size between 1 byte and 1.0 GiB`,
		"store 5":                   `store: "5" is not a size`,
		"room":                      "wrong argument count",
		"loud on":                   "wrong argument count",
		"bulb":                      "wrong argument count",
		"bulb a b":                  "wrong argument count",
		"bulb a {\nwatts 1\n}":      `bulb a: unknown option "watts"; there are: size`,
		"main a\nmain b":            "main: it is given already, at Testfile:3",
		"cord a {\nsize x\n}":       `size: "x" is not a whole number, at Testfile:3`,
		"on maybe":                  `on: "maybe" is not one of: on, off`,
		"lit":                       `lamp: unknown option "lit"; there are: bulb, colour, cord, dim, fade, for, key, loud, main, on, room, store, watts, wires`,
		"colour blue {\nwatts 1\n}": `lamp: unknown option "{"`,
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// What JSON says is checked as what a Caddyfile says.
func TestCheck(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"colour": "pink"}`:             `colour: "pink" is not one of: red, green, blue`,
		`{"watts": -1}`:                  "watts must not be negative",
		`{"for": -1}`:                    "for must not be negative",
		`{"store": -1}`:                  "store must not be negative",
		`{"bulbs": {"a": null}}`:         "",
		`{"rooms": ["x"], "dim": 0}`:     "",
		`{"main": {"size": -2}}`:         "",
		`{"dim": -1, "cords": [{}, {}]}`: "dim must not be negative",
	} {
		l := new(lamp)
		if err := json.Unmarshal([]byte(text), l); err != nil {
			t.Fatal(err)
		}
		if err := option.Check(l); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	l := &lamp{Cords: make([]bulb, 1), Bulbs: map[string]*bulb{"a": {}, "b": nil}}
	var shown []resource.Setting
	for _, s := range option.InForce(l) {
		shown = append(shown, resource.Setting{Name: s.Name, Value: s.Value, Source: s.Source})
	}
	var want []resource.Setting
	for _, o := range [][2]string{
		{"colour", "red"}, {"dim", "10"}, {"fade", "never"}, {"for", "1h"}, {"main", "none"}, {"main size", "3"}, {"on", "on"}, {"watts", "40"},
	} {
		want = append(want, resource.Setting{Name: o[0], Value: o[1], Source: resource.FromDefault})
	}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Error(diff)
	}
	if err := option.SetDefaults(l); err != nil {
		t.Fatal(err)
	}
	if l.Colour != "red" || l.Watts != 40 || *l.Dim != 10 || !*l.On || time.Duration(l.For) != time.Hour || l.Fade != nil || l.Cords[0].Size != 3 || l.Bulbs["a"].Size != 3 {
		t.Errorf("%+v", l)
	}
}
