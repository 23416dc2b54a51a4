package docs

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/cmd/weft/command"
	"github.com/weft-sdn/weft/internal/testprogram"
)

func TestMain(m *testing.M) {
	status := m.Run()
	testprogram.Remove()
	os.Exit(status)
}

// TestCommands has every weft command line of the documents parsed by the
// program's own commands: commands, flags, their values, and how many arguments.
func TestCommands(t *testing.T) {
	t.Setenv("PATH", filepath.Dir(testprogram.WithBench(t))+":"+os.Getenv("PATH"))
	lines := 0
	for _, document := range documents(t) {
		for _, b := range blocks(t, document) {
			if b.language != "sh" && b.language != "console" {
				continue
			}
			for i, line := range joined(b.text) {
				args := commandLine(line)
				if args == nil {
					continue
				}
				lines++
				if problem := parses(args); problem != "" {
					t.Errorf("%s:%d: %s: %s", document, b.line+i, strings.TrimSpace(line), problem)
				}
			}
		}
		for i, line := range prose(t, document) {
			for _, m := range code.FindAllStringSubmatch(line, -1) {
				if args := commandLine(strings.TrimSuffix(m[1], " …")); args != nil {
					lines++
					// The rest of the arguments may be left to the reader.
					if problem := parses(args); problem != "" && !strings.HasPrefix(problem, "too few") {
						t.Errorf("%s:%d: %s: %s", document, i+1, m[1], problem)
					}
				}
			}
		}
	}
	if lines < 40 {
		t.Errorf("only %d command lines found", lines)
	}
	for _, wrong := range []string{"weft get nothing", "weft get flows --swich 1", "weft trace 10.0.0.1", "weft path 1 2 3", "weft up split now", "weft lab ping h1 h2 -c x"} {
		if parses(commandLine(wrong)) == "" {
			t.Errorf("%s passes", wrong)
		}
	}
}

// joined returns the lines of a text by their numbers, from 0; those that end
// with a backslash have the next in them.
func joined(text string) map[int]string {
	lines := map[int]string{}
	first, before := 0, ""
	for i, line := range strings.Split(text, "\n") {
		if before == "" {
			first = i
		}
		if part, more := strings.CutSuffix(line, "\\"); more {
			before += part
			continue
		}
		lines[first], before = before+line, ""
	}
	return lines
}

var assignment = regexp.MustCompile(`^[A-Z_]+=\S*$`)

// commandLine returns the words behind weft in a line of a shell, nil if it is
// another command. It knows quotes, comments, pipes and redirections.
func commandLine(line string) []string {
	var words []string
	var word strings.Builder
	quote, some := rune(0), false
	end := func() {
		if some {
			words = append(words, word.String())
		}
		word.Reset()
		some = false
	}
scan:
	for _, c := range strings.TrimPrefix(strings.TrimSpace(line), "$ ") {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '"' || c == '\'':
			quote, some = c, true
		case c == ' ':
			end()
		case c == '#' && !some, strings.ContainsRune("|&;<>", c):
			break scan
		default:
			word.WriteRune(c)
			some = true
		}
	}
	end()
	for len(words) > 0 && (words[0] == "sudo" || assignment.MatchString(words[0])) {
		words = words[1:]
	}
	if len(words) == 0 || words[0] != "weft" && words[0] != "bin/weft" {
		return nil
	}
	return words[1:]
}

var (
	usage     = regexp.MustCompile(`(?m)^Usage:\n  weft(.*)$`)
	valueFlag = regexp.MustCompile(`(?m)^ +(?:-(\w), )?(?:    )?--([\w-]+) (\S+)   ?`)
)

// parses has the program parse a command line and print its help instead of
// running it. It returns what is wrong.
func parses(args []string) string {
	before := args
	for i, a := range args {
		if a == "--" {
			before = args[:i]
		}
	}
	help := append(append([]string{}, before...), "--help")
	var said bytes.Buffer
	status := command.Main(append(help, args[len(before):]...), &said, &said)
	out := said.Bytes()
	if status != 0 {
		return strings.TrimSpace(string(out))
	}
	m := usage.FindSubmatch(out)
	if m == nil {
		return "its help has no usage: " + string(out)
	}
	takesValue := map[string]bool{}
	for _, f := range valueFlag.FindAllSubmatch(out, -1) {
		takesValue["-"+string(f[1])], takesValue["--"+string(f[2])] = true, true
	}
	var words []string
	for i := 0; i < len(before); i++ {
		switch a := before[i]; {
		case takesValue[a]:
			i++
		case !strings.HasPrefix(a, "-") || a == "-":
			words = append(words, a)
		}
	}
	if len(before) < len(args) {
		words = append(words, args[len(before)+1:]...)
	}
	least, most, group, optional := 0, 0, false, false
	fields := strings.Fields(string(m[1]))
	for i, w := range fields {
		optional = optional || w[0] == '['
		switch {
		case w == "[flags]" || w == "--":
		case strings.HasPrefix(w, "--") || i > 0 && takesValue[fields[i-1]]: // a flag that must be given
		case w == "|": // what is before it, or else a flag
			least--
		case w == "[command]":
			group = true
		case !optional && w != strings.ToUpper(w):
			if len(words) == 0 || words[0] != w {
				return "there is no such command; its help is that of weft" + string(m[1])
			}
			words = words[1:]
		default:
			most++
			if !optional {
				least++
			}
			if strings.Contains(w, "...") {
				most += 1000
			}
		}
		if strings.HasSuffix(w, "]") {
			optional = false
		}
	}
	switch {
	case group && len(words) > 0:
		return "unknown command " + words[0]
	case len(words) < least:
		return "too few arguments for weft" + string(m[1])
	case len(words) > most:
		return "too many arguments for weft" + string(m[1])
	}
	return ""
}

// TestConfigurations checks every configuration and topology in the documents
// with the program.
func TestConfigurations(t *testing.T) {
	weft := testprogram.Weft(t)
	checked := 0
	for _, document := range documents(t) {
		for _, b := range blocks(t, document) {
			if b.language != "yaml" {
				continue
			}
			file := filepath.Join(t.TempDir(), "example.yaml")
			if err := os.WriteFile(file, []byte(b.text), 0o600); err != nil {
				t.Fatal(err)
			}
			checked++
			if out, err := exec.Command(weft, "check", file).CombinedOutput(); err != nil {
				t.Errorf("%s:%d: %s", document, b.line, bytes.ReplaceAll(out, []byte(file), []byte("example")))
			}
		}
	}
	if checked == 0 {
		t.Error("no example of a configuration found")
	}
}
