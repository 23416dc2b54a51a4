package command

import (
	"strings"
	"testing"

	"github.com/weft-sdn/weft/api"
)

// TestCommandsOfMethods holds the commands that the .proto files name to those
// that there are.
func TestCommandsOfMethods(t *testing.T) {
	named := 0
	for _, m := range api.Methods() {
		command := api.RulesOf(m.MethodName()).GetCommand()
		if command == "" {
			continue
		}
		named++
		words := strings.Fields(command)
		c, rest, err := rootCommand(laboratory()...).Find(words)
		if err != nil || len(rest) > 0 && !c.DisableFlagParsing || !c.Runnable() {
			t.Errorf("%s: there is no command weft %s", m.MethodName(), command)
		}
	}
	if named < 50 {
		t.Errorf("only %d methods name a command", named)
	}
}
