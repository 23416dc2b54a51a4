package topology

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Program is one that a lab starts in a host and watches.
type Program struct {
	Name string `json:"name"` // empty: that of the file it is in
	// Command is words as a shell reads them. No shell sees them: what one would
	// expand must be quoted, or given to it, as in sh -c 'echo $HOME'. weft is
	// the program that brought the lab up.
	Command string            `json:"command"`
	Env     map[string]string `json:"env,omitempty"`
	Restart Restart           `json:"restart"` // empty: RestartAlways

	line int
}

// Restart says when a program that has ended is started again.
type Restart string

const (
	RestartAlways  Restart = "always"
	RestartFailure Restart = "on-failure" // unless its exit status was 0
	RestartNever   Restart = "never"
)

const (
	restartRule = "always, on-failure, never"
	envRule     = "letters, digits and '_', not beginning with a digit nor with WEFT_LAB"
	notPlain    = "|&;<>()$`\n"
)

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// SplitWords returns the words of a command. It takes what a shell takes as plain
// words, single and double quotes and backslashes, and nothing else of it.
func SplitWords(command string) ([]string, error) {
	var all []string
	var word strings.Builder
	begun, quote := false, byte(0)
	special := func(c byte) error {
		return fmt.Errorf("%q is for a shell: quote it, or write sh -c '…'", c)
	}
	if strings.IndexByte(command, 0) >= 0 {
		return nil, errors.New("it has a zero byte")
	}
	command = strings.Trim(command, " \t\n")
	for i := 0; i < len(command); i++ {
		c := command[i]
		escapes := c == '\\' && quote != '\'' && i+1 < len(command) &&
			(quote == 0 || strings.IndexByte("\\\"$`\n", command[i+1]) >= 0)
		switch {
		case escapes:
			i++
			if command[i] != '\n' {
				begun = true
				word.WriteByte(command[i])
			}
		case c == quote:
			quote = 0
		case quote == '\'', quote == '"' && c != '$' && c != '`':
			word.WriteByte(c)
		case quote == '"':
			return nil, special(c)
		case c == '\'' || c == '"':
			begun, quote = true, c
		case c == ' ' || c == '\t':
			if begun {
				all = append(all, word.String())
				word.Reset()
			}
			begun = false
		case strings.IndexByte(notPlain, c) >= 0:
			return nil, special(c)
		case c == '\\':
			return nil, errors.New("it ends in a backslash")
		default:
			begun = true
			word.WriteByte(c)
		}
	}
	switch {
	case quote != 0:
		return nil, fmt.Errorf("a %c is not closed", quote)
	case begun:
		all = append(all, word.String())
	case len(all) == 0:
		return nil, errors.New("it is empty")
	}
	return all, nil
}

// plainWord is what a shell takes as it stands.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// Quote returns the command, for Program.Command or a shell, that has these words.
func Quote(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		if quoted[i] = w; !plainWord.MatchString(w) {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}
