package plan_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/cputime"
	"github.com/weft-sdn/weft/plan"
)

func document(t testing.TB, text string) *plan.Document {
	t.Helper()
	d, err := plan.ParseConfig("weft.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestParseConfig(t *testing.T) {
	d := document(t, "services: [b, a]\npipeline: []\n# of b\nb:\n  x: {y: [1, two]}\na: {k: v}\nempty:\n")
	if len(d.Sections) != 2 || d.Sections[0].Service != "a" || d.Services != "[b, a]" || d.Pipeline != "[]" || d.Line("b") != 4 {
		t.Errorf("%+v", d)
	}
	text, err := plan.ConfigYAML(d.Sections)
	if want := "a:\n  k: v\nb:\n  x:\n    \"y\": [1, two]\n"; err != nil || string(text) != want {
		t.Errorf("%s, %v; want %s", text, err, want)
	}
	if d.Sections[1].Sets("x.z") || !d.Sections[1].Sets("x.y") || !d.Sections[1].Sets("x") {
		t.Error("which keys are set")
	}
	for _, nothing := range []string{"", "# nothing\n", "{}\n", "a:\n"} {
		if d := document(t, nothing); len(d.Sections) != 0 || plan.Hash(d.Sections) != plan.Hash(nil) {
			t.Errorf("%q: %+v", nothing, d)
		}
	}
}

// bomb is YAML whose aliases stand for a billion texts.
func bomb() string {
	text := "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n"
	for i := range 9 {
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 10), ", "))
	}
	return text
}

func TestHostileConfigs(t *testing.T) {
	for name, text := range map[string]string{
		"billion laughs":   bomb(),
		"alias of itself":  "a: &a {b: *a}\n",
		"merge key":        "a: &a {b: 1}\nc: {<<: *a}\n",
		"deep brackets":    "a: " + strings.Repeat("[", 100_000),
		"deep braces":      "a: " + strings.Repeat("{b: ", 50_000),
		"deep dashes":      "a:\n  " + strings.Repeat("- ", 50_000),
		"deep indentation": deep(5_000),
		"huge text":        "a: {b: " + strings.Repeat("x", 1<<20) + "}",
		"many lines":       "a:\n" + strings.Repeat("  - x\n", 50_000),
		"no text":          "a: \xff\xfe",
		"zero":             "a: \x00",
		"tag":              "a: !!binary aGk=",
		"key twice":        "a: {b: 1, b: 2}",
		"two documents":    "a: {b: 1}\n---\na: {b: 2}\n",
		"list as a key":    "? [a, b]\n: 1\n",
	} {
		before := cputime.Used()
		d, err := plan.ParseConfig("weft.yaml", []byte(text))
		if err == nil && name != "zero" {
			t.Errorf("%s: taken as %+v", name, d)
		}
		if err != nil && (!strings.Contains(err.Error(), "weft.yaml") || len(err.Error()) > 64<<10) {
			t.Errorf("%s: %.200v", name, err)
		}
		if took := cputime.Used() - before; took > 10*time.Second {
			t.Errorf("%s: took %v of processor time", name, took)
		}
	}
}

func deep(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", min(i, 40)) + "a:\n")
	}
	return b.String()
}

// The hash is that of what is said, not of how.
func TestHash(t *testing.T) {
	same := []string{
		"a: {x: 1, y: [1, 2], z: {p: q, r: s}}\nb: {t: true}\n",
		"b:\n  t: true\na:\n  z: {r: s, p: q}   # why\n  y:\n  - 1\n  - 2\n  x: 1\n",
	}
	other := []string{
		"a: {x: 1, y: [2, 1], z: {p: q, r: s}}\nb: {t: true}\n", "a: {x: 1, y: [1, 2], z: {p: q, r: s}}\n",
		"a: {x: \"1\", y: [1, 2], z: {p: q, r: s}}\nb: {t: true}\n", "",
	}
	want := plan.Hash(document(t, same[0]).Sections)
	if len(want) != 16 {
		t.Errorf("hash %q", want)
	}
	for _, text := range same {
		if got := plan.Hash(document(t, text).Sections); got != want {
			t.Errorf("%q has %s, want %s", text, got, want)
		}
	}
	for _, text := range other {
		if plan.Hash(document(t, text).Sections) == want {
			t.Errorf("%q has the same hash", text)
		}
	}
}

func TestMask(t *testing.T) {
	d := document(t, "gateway: {token: a, token_file: b, list: [{name: n, private_key: c}]}\ndiscovery: {key: d}\n")
	text, err := plan.ConfigYAML(plan.Mask(d.Sections))
	want := "discovery:\n  key: \"<secret>\"\ngateway:\n  token: \"<secret>\"\n  token_file: b\n  list:\n    - {name: \"n\", private_key: \"<secret>\"}\n"
	if err != nil || string(text) != want {
		t.Errorf("%s, %v; want %s", text, err, want)
	}
	masked := document(t, string(text))
	if got := fmt.Sprint(plan.Masked(masked.Sections)); got != "[discovery.key gateway.token gateway.list.private_key]" {
		t.Errorf("masked: %s", got)
	}
}

// What is written as YAML is read as the same, whatever it is.
func TestConfigRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 4))
	for range 300 {
		d := document(t, randomConfig(r))
		text, err := plan.ConfigYAML(d.Sections)
		if err != nil {
			t.Fatal(err)
		}
		if again := document(t, string(text)); plan.Hash(again.Sections) != plan.Hash(d.Sections) {
			t.Fatalf("%s\nis read as something else", text)
		}
	}
}

func randomConfig(r *rand.Rand) string {
	var value func(depth int) string
	value = func(depth int) string {
		switch n := r.IntN(6); {
		case n < 2 || depth > 3:
			return []string{"1", "true", "\"yes\"", "a b", "2.5", "3s", "\"\"", "'it''s'", "0x10", "~x"}[r.IntN(10)]
		case n < 4:
			var parts []string
			for range r.IntN(4) {
				parts = append(parts, value(depth+1))
			}
			return "[" + strings.Join(parts, ", ") + "]"
		default:
			var parts []string
			for i := range 1 + r.IntN(3) {
				parts = append(parts, fmt.Sprintf("k%d: %s", i, value(depth+1)))
			}
			return "{" + strings.Join(parts, ", ") + "}"
		}
	}
	text := ""
	for i := range r.IntN(5) {
		text += fmt.Sprintf("s%d: {k: %s}\n", i, value(0))
	}
	return text
}

func FuzzParseConfig(f *testing.F) {
	f.Add("services: [a]\na: {b: [1, {c: d}]}\n")
	f.Add("a: &a {b: *a}\n")
	f.Add(bomb())
	f.Add("a: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[")
	f.Add("a: |\n  text\n  more\nb: >-\n  x\n")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 8<<10 {
			return // the parser's own time grows with the square
		}
		d, err := plan.ParseConfig("f", []byte(text))
		if err != nil {
			return
		}
		hash := plan.Hash(d.Sections)
		plan.Mask(d.Sections)
		out, err := plan.ConfigYAML(d.Sections)
		if err != nil {
			return // a section that is no mapping, which its service refuses
		}
		again, err := plan.ParseConfig("f", out)
		if err != nil {
			t.Fatalf("%q was written as %q, which is refused: %v", text, out, err)
		}
		if plan.Hash(again.Sections) != hash {
			t.Fatalf("%q was written as %q, which says something else", text, out)
		}
	})
}
