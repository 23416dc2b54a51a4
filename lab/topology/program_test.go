package topology

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// What words takes, a shell takes as the same words.
func TestWords(t *testing.T) {
	for _, command := range []string{
		"weft nf nrf", "  a\tb  ", `a 'b c' "d e"f`, `a\ b \'c '' ""`, `echo "a\"b\\c\$d\e" 'x\y'`, "a \\\n b", "a 'b\nc'",
		`a "'" '"'`, "a --x=1 {b} c:d/e,f@g%h+i", "a 'b|c;d&e<f>g(h)$i`j'", "a é 'ü'",
		Quote("a", "", "b c", "$(touch /tmp/x)", "it's", "`x`", "a;b", "line\nbreak", "-n", "é", `\`),
	} {
		got, err := SplitWords(command)
		if err != nil {
			t.Errorf("%q: %v", command, err)
			continue
		}
		out, err := exec.Command("sh", "-c", `for w in `+command+`; do printf '%s\0' "$w"; done`).Output()
		if want := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: got %q; a shell has %q, %v", command, got, want, err)
		}
	}
	for command, want := range map[string]string{
		"":             "it is empty",
		" \n ":         "it is empty",
		"a 'b":         "a ' is not closed",
		`a "b`:         `a " is not closed`,
		`a \`:          "it ends in a backslash",
		"a \\\x00":     "it has a zero byte",
		"a\x00b":       "it has a zero byte",
		"a; b":         "';' is for a shell: quote it, or write sh -c '…'",
		"a\nb":         `'\n' is for a shell: quote it, or write sh -c '…'`,
		"a $HOME":      "'$' is for a shell: quote it, or write sh -c '…'",
		`a "$HOME"`:    "'$' is for a shell: quote it, or write sh -c '…'",
		"a `b`":        "'`' is for a shell: quote it, or write sh -c '…'",
		"curl x?a&b":   "'&' is for a shell: quote it, or write sh -c '…'",
		`a "$(id)" >x`: "'$' is for a shell: quote it, or write sh -c '…'",
	} {
		if got, err := SplitWords(command); err == nil || err.Error() != want {
			t.Errorf("%q: got %q, %v; want %s", command, got, err, want)
		}
	}
}

func FuzzWords(f *testing.F) {
	f.Add("a 'b' \"c\" \\d")
	f.Fuzz(func(t *testing.T, command string) {
		got, err := SplitWords(command)
		if err != nil {
			return
		}
		if again, err := SplitWords(Quote(got...)); err != nil || !slices.Equal(again, got) {
			t.Errorf("%q are %q, quoted %q, %v", command, got, again, err)
		}
	})
}
