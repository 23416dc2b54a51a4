package planning

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/weft-sdn/weft/plan"
)

// MadePlan is a plan that weft plan make has written, with what its head says.
type MadePlan struct {
	source  string
	plan    *plan.Plan
	options Options
	by      []string          // the flags of its head, as --name=value
	where   map[string]string // the servers of workers
}

// The beginnings of the lines of a head.
const (
	madeByLine = "# Made by: weft plan make"
	serverLine = "# Server "
)

// ReadMade reads a plan and its head. Flags that are set in given, and are those
// of weft plan make, count instead of what the head says.
func ReadMade(source string, text []byte, given *pflag.FlagSet) (*MadePlan, error) {
	m := &MadePlan{source: source, where: map[string]string{}}
	var err error
	if m.plan, err = plan.Parse(source, text); err != nil {
		return nil, err
	}
	flags := pflag.NewFlagSet(source, pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	m.options.Flags(flags)
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "#") {
			break
		}
		if words, ok := strings.CutPrefix(line, madeByLine); ok {
			if m.by, err = splitQuoted(words); err == nil {
				err = flags.Parse(m.by)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: the line %q cannot be read: %w", source, madeByLine+" …", err)
			}
		}
		if rest, ok := strings.CutPrefix(line, serverLine); ok {
			server, workers, ok := strings.Cut(rest, ":")
			for _, w := range strings.Fields(workers) {
				if ok {
					m.where[w] = server
				}
			}
		}
	}
	var wrong error
	given.Visit(func(f *pflag.Flag) {
		if own := flags.Lookup(f.Name); own != nil && wrong == nil {
			if list, ok := f.Value.(pflag.SliceValue); ok {
				wrong = own.Value.(pflag.SliceValue).Replace(list.GetSlice())
			} else {
				wrong = own.Value.Set(f.Value.String())
			}
		}
	})
	if wrong != nil {
		return nil, wrong
	}
	for _, w := range m.plan.Workers {
		if w.Machine != "" {
			m.where[w.Name] = w.Machine
		}
	}
	if m.options.Cut.Network == "" {
		return nil, &headlessError{source}
	}
	return m, nil
}

// headlessError says that the head of a plan does not say for what it was made.
type headlessError struct{ source string }

func (e *headlessError) Error() string {
	return fmt.Sprintf("%s: its head does not say by which command of weft plan make it was made; give the flags again: --network, and --profile and --servers if they were given", e.source)
}

// splitQuoted splits --name="value" words.
func splitQuoted(s string) (list []string, err error) {
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		name, rest, ok := strings.Cut(s, "=")
		if !ok {
			return nil, fmt.Errorf("want --FLAG=\"VALUE\", not %q", s)
		}
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return nil, fmt.Errorf("want a value in quotes after %s=", name)
		}
		value, err := strconv.Unquote(quoted)
		if err != nil {
			return nil, fmt.Errorf("value of %s: %w", name, err)
		}
		list, s = append(list, name+"="+value), rest[len(quoted):]
	}
	return list, nil
}

// model makes the plan anew by its head, and says what that model thinks of the
// plan in the file, which somebody may have changed.
func (m *MadePlan) model(ctx context.Context, from Sources) (best, is *plan.Made, broken []string, err error) {
	if best, err = m.options.Make(ctx, from); err != nil {
		return nil, nil, nil, fmt.Errorf("%s: make it anew: %w", m.source, err)
	}
	if len(best.Servers) == 1 {
		for _, w := range m.plan.Workers {
			m.where[w.Name] = best.Servers[0].Name
		}
	}
	is, violations, err := best.As(m.plan, m.where)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("%s: %w", m.source, err)
	}
	for _, v := range violations {
		broken = append(broken, v.Text)
	}
	return best, is, broken, nil
}

// currentPlaces returns where the shards of a plan are that runs now.
func currentPlaces(ctx context.Context, from Sources, name string) (map[string]string, error) {
	source, text, err := from.Plan(name)
	if err != nil {
		return nil, fmt.Errorf("--current: %w", err)
	}
	m, err := ReadMade(source, text, &pflag.FlagSet{})
	if err != nil {
		return nil, fmt.Errorf("--current: %w", err)
	}
	m.options.current = ""
	_, is, _, err := m.model(ctx, from)
	if err != nil {
		return nil, fmt.Errorf("--current: %w", err)
	}
	return is.Places(), nil
}

// Head is what the comments at the head of a plan say of how weft plan make made it.
type Head struct {
	Profile string // a file; empty: the built-in one
}

// ReadHead returns a plan and its Head, which is empty if weft plan make did not
// make the plan.
func ReadHead(source string, text []byte) (*plan.Plan, Head, error) {
	m, err := ReadMade(source, text, &pflag.FlagSet{})
	headless := (*headlessError)(nil)
	switch {
	case errors.As(err, &headless):
		p, err := plan.Parse(source, text)
		return p, Head{}, err
	case err != nil:
		return nil, Head{}, err
	}
	return m.plan, Head{Profile: m.options.profile}, nil
}
