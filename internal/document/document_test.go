package document_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/internal/document"
)

var (
	strict = document.Limits{What: "file", Octets: 1 << 20, Lines: 100_000}
	loose  = document.Limits{What: "file", Octets: 1 << 20, Lines: 100_000, Aliases: 1000}
)

// told returns what is said of a text, each mistake on a line.
func told(mistakes []document.Mistake) string {
	var lines []string
	for _, m := range mistakes {
		lines = append(lines, m.In("f").Error())
	}
	return strings.Join(lines, "\n")
}

func TestRead(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   `null`,
		"# nothing\n":                        `null`,
		"---\n":                              `null`,
		"a: 1\nb: [x, 'y', true, ~]\n":       `{"a":1,"b":["x","y",true,null]}`,
		"a: 0x1f\nb: 1_000\nc: .5\n":         `{"a":"0x1f","b":"1_000","c":".5"}`, // JSON writes them otherwise
		"a: 02:00:00:00:00:01\nb: 10.0.0.1":  `{"a":"02:00:00:00:00:01","b":"10.0.0.1"}`,
		"a: yes\nb: 2026-01-02\nc: =\n":      `{"a":"yes","b":"2026-01-02","c":"="}`,
		"a: |\n  two\n  lines\n":             `{"a":"two\nlines\n"}`,
		"{\"a\":\t[1,\n\t2]}":                `{"a":[1,2]}`,
		"a: \"[[[[\" # [[[\nb: '{{{'":        `{"a":"[[[[","b":"{{{"}`,
		strings.Repeat("a: [ # [[[\n]\n", 1): `{"a":[]}`,
	} {
		v, mistakes, ok := document.Read([]byte(text), strict)
		if got := string(v.JSON()); !ok || len(mistakes) > 0 || got != want {
			t.Errorf("%q: %s, %s; want %s", text, got, told(mistakes), want)
		}
	}
}

// A bracket on each of many lines, in texts, is not taken for nesting.
func TestBracketsInTexts(t *testing.T) {
	v, mistakes, ok := document.Read([]byte(strings.Repeat("- \"[1\" # (0, 5]\n- 'up to {'\n", 500)), strict)
	if !ok || len(mistakes) > 0 || len(v.Items) != 1000 {
		t.Errorf("%d items, %s", len(v.Items), told(mistakes))
	}
}

func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\nb: \xff\n":                     "f:2: not text in UTF-8; write it so",
		"a: \x00\n":                           "f:1: not well-formed YAML: control characters are not allowed",
		"a:\n\tb: 1\n":                        "f:2: not well-formed YAML: a value cannot begin with a tab, @, ` or %; indent with spaces, or put the text into quotes",
		"a:\n  - x\n\t- y\nb: 1\n":            "f:3: not well-formed YAML: the line is indented with a tab; indent with spaces",
		"a: [1\n":                             "f:1: not well-formed YAML: the list that begins with [ wants , or ]",
		"a: 1\n---\nb: 2\n":                   "f: 2 YAML documents; put everything into one (take out the lines ---)",
		"a: 1\nb: 1\na: 2\nb: 2\n":            "f:3: key a is there twice, first on line 1; keep one of them\nf:4: key b is there twice, first on line 2; keep one of them",
		strings.Repeat("[", 50):               "f:1: not well-formed YAML: want a value; is a bracket not closed?",
		strings.Repeat("[", 5000):             "f:1: nested too deeply; at most 32 levels are allowed",
		"\n" + strings.Repeat("- ", 50) + "1": "f:2: nested too deeply; at most 32 levels are allowed",
		"a: &x 1\nb: *x\n":                    "f:1: a file has no anchors, aliases, merge keys or tags; write the value itself\nf:2: a file has no anchors, aliases, merge keys or tags; write the value itself",
		"a: *x\n":                             "f:1: a file has no anchors, aliases, merge keys or tags; write the value itself",
		"a: !!str 1\n":                        "f:1: a file has no anchors, aliases, merge keys or tags; write the value itself",
		"? [a]\n: 1\n":                        "f:1: a file has no anchors, aliases, merge keys, tags or composite keys; write the key itself",
		"<<: {}\n":                            "f:1: a file has no anchors, aliases, merge keys, tags or composite keys; write the key itself",
		strings.Repeat("\n", 100_001):         "f: 100001 lines; a file has at most 100000",
		strings.Repeat("a", 1<<20+1):          "f: 1048577 octets; a file has at most 1048576",
	} {
		_, mistakes, _ := document.Read([]byte(text), strict)
		if got := told(mistakes); got != want {
			t.Errorf("%.40q:\n%s\nwant\n%s", text, got, want)
		}
	}
}

func TestAliases(t *testing.T) {
	bomb := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c < 'j'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c, ", c-1), 9), ", "))
	}
	for text, want := range map[string]string{
		"a: &x {k: [1, 2]}\nb: *x\nc: !!str 5\n": `{"a":{"k":[1,2]},"b":{"k":[1,2]},"c":"5"}`,
		"b: *x\na: &x 1\n":                       "f:1: unknown anchor 'x' referenced; write the anchor, as &name before a value, above its alias",
		"a: {<<: {b: 1}}\n":                      "f:1: a file has no merge keys or composite keys, nor keys with anchors, aliases or tags; write the key itself",
		bomb:                                     "aliases stand for more than 1000 values; write the values themselves",
		"a: &a [*a, *a]\n":                       "nested too deeply",
	} {
		v, mistakes, ok := document.Read([]byte(text), loose)
		if got := told(mistakes) + strings.Repeat(string(v.JSON()), map[bool]int{true: 1}[ok && len(mistakes) == 0]); !strings.Contains(got, want) || len(got) > 1000 {
			t.Errorf("%.40q:\n%.300s\nwant\n%s", text, got, want)
		}
	}
	v, _, _ := document.Read([]byte("a: &x\n  k: 1\nb: *x\n"), loose)
	if b, _ := v.Get("b"); b.Line != 3 {
		t.Errorf("an alias is on line %d; want 3", b.Line)
	}
}

func TestReadAll(t *testing.T) {
	list, mistakes, ok := document.ReadAll([]byte("a: 1\n---\n---\n- b\n"), strict)
	if !ok || len(mistakes) > 0 || len(list) != 3 || list[1].Kind != document.Null || list[2].Kind != document.List || list[2].Line != 4 {
		t.Errorf("%v %v %v", list, mistakes, ok)
	}
}

// random returns any value that JSON has.
func random(r *rand.Rand, depth int) any {
	switch n := r.IntN(7); {
	case n == 0 && depth > 0:
		m := map[string]any{}
		for range r.IntN(4) {
			m[randomText(r)] = random(r, depth-1)
		}
		return m
	case n == 1 && depth > 0:
		l := []any{}
		for range r.IntN(4) {
			l = append(l, random(r, depth-1))
		}
		return l
	case n == 2:
		return float64(r.IntN(1e6)) / 8
	case n == 3:
		return r.IntN(2) == 0
	case n == 4:
		return nil
	}
	return randomText(r)
}

func randomText(r *rand.Rand) string {
	whole := []string{"", "yes", "null", "~", "1e3", "0x1f", "10:20:30", "2026-01-02", "<<", "=", ".inf", "- a", "# a", "a: b", "---", "00:00:00:00:00:01", "a #b", "é\u00a0\U0001f600", "\ufeffx"}
	if r.IntN(2) == 0 {
		return whole[r.IntN(len(whole))]
	}
	var b strings.Builder
	for range r.IntN(6) {
		b.WriteString([]string{"a", " ", "\n", "\t", ":", "#", "'", "\"", "\\", "-", "[", "{", "é", "\r", "\x01", "0"}[r.IntN(16)])
	}
	return b.String()
}

// Whatever is written, in any of the ways, is read as it was.
func TestWrittenIsRead(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		want := map[string]any{"x": random(r, 3), "y": random(r, 3)}
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		v, err := document.FromJSON(text)
		if err != nil {
			t.Fatal(err)
		}
		readable, err := v.Readable()
		if err != nil {
			t.Fatal(err)
		}
		line, err := v.OneLine()
		if err != nil || strings.Contains(line, "\n") {
			t.Fatalf("%q: %v", line, err)
		}
		for _, written := range []string{string(readable), line, string(v.YAML()), string(v.Located()), v.Flow(), string(v.JSON())} {
			back, mistakes, ok := document.Read([]byte(written), strict)
			var got map[string]any
			if err := json.Unmarshal(back.JSON(), &got); !ok || err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("%s\nwas written as\n%s\nand is read as\n%v %s %v", text, written, got, told(mistakes), err)
			}
		}
	}
}

func TestFromJSON(t *testing.T) {
	for _, text := range []string{"", "{", "[1", "{} {}", "{\"a\"}", strings.Repeat("[", 2000) + strings.Repeat("]", 2000)} {
		if v, err := document.FromJSON([]byte(text)); err == nil {
			t.Errorf("%.20q: read as %s", text, v.Flow())
		}
	}
	v, err := document.FromJSON([]byte(`{"z": 18446744073709551615, "a": 1.50}`))
	if got := v.Flow(); err != nil || got != "{z: 18446744073709551615, a: 1.50}" {
		t.Errorf("%s, %v", got, err)
	}
}

// A file that never ends is refused.
func TestReadFile(t *testing.T) {
	if _, err := document.ReadFile("/dev/zero"); err == nil || !strings.Contains(err.Error(), "/dev/zero: more than 67108864 octets") {
		t.Errorf("got %v", err)
	}
	if text, err := document.ReadFile("document_test.go"); err != nil || !bytes.HasPrefix(text, []byte("package document_test")) {
		t.Errorf("got %d octets, %v", len(text), err)
	}
	if _, err := document.ReadFile("missing.yaml"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
