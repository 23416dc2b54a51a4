package virtual

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/api"
)

// finalState is what the network and the controller come to at the end of a schedule, by
// switch and by method, as text: what every switch has, and what the controller answers. It
// does not depend on the order of what happens at one instant, nor on how long anything took.
type finalState []section

type section struct{ name, text string }

// String returns the whole text, as -state writes it.
func (s finalState) String() string {
	var b strings.Builder
	for _, x := range s {
		fmt.Fprintf(&b, "%s\n%s", x.name, x.text)
	}
	return b.String()
}

// digests returns the name of each section with a digest of its text.
func (s finalState) digests() (list []string) {
	for _, x := range s {
		sum := sha256.Sum256([]byte(x.text))
		list = append(list, fmt.Sprintf("%s:%x", x.name, sum[:4]))
	}
	return list
}

// expired is how long routes take to expire that nobody uses.
const expired = 5 * time.Minute

// statsRead is longer than the time between two readings of the switches' tables
// (stats.interval).
const statsRead = time.Minute

// errUnsettled says that the operator's entries are not those of the seed, so that the final
// state cannot be compared. It is no failure of a schedule: flowrules refuses, until its next
// start, to change a page of entries that its predecessor has written after it had read it.
var errUnsettled = errors.New("the operator's entries cannot be set")

// converge brings the network to a state that depends on the seed alone: whoever pings
// has stopped and their routes have expired, the operator's entries are those of
// the seed, and every host has reached every other once.
func (w *world) converge(ctx context.Context) error {
	by := w.cluster.present()
	if by == nil {
		return errAbsent
	}
	var old []*api.FlowEntry
	w.wishes.mu.Lock()
	for _, p := range sorted(w.wishes.at) {
		old = append(old, entryOf(w.wishes.at[p], p))
	}
	w.wishes.mu.Unlock()
	var entries []*api.FlowEntry
	for i, d := range w.devices {
		entries = append(entries, entryOf(d.sw, 900+i))
	}
	if err := until(ctx, time.Minute, func(ctx context.Context) error { // a write that the store has not confirmed fails the next one
		if len(old) > 0 {
			if _, err := weft.Call(ctx, by.env, api.DeleteFlows, &api.DeleteFlowsRequest{Flows: old}); err != nil {
				return fmt.Errorf("delete flows: %w", err)
			}
		}
		_, err := weft.Call(ctx, by.env, api.AddFlows, &api.AddFlowsRequest{Flows: entries})
		return err
	}); err != nil {
		return fmt.Errorf("%w: %w", errUnsettled, err)
	}
	if w.managed != nil {
		if err := w.remake(ctx); err != nil {
			return err
		}
	}
	rest(ctx, expired)
	of := w.islands()
	for _, a := range w.stations {
		for _, b := range w.stations {
			if a != b && !w.apart(a, b) && of[a.Location().Switch] == of[b.Location().Switch] && !a.ping(ctx, b, w.number(), 3*time.Second) {
				return fmt.Errorf("no answer at the end: %s>%s", a.name, b.name)
			}
		}
	}
	rest(ctx, statsRead)
	return nil
}

// observe returns the state that there is.
func (w *world) observe(ctx context.Context) (s finalState, err error) {
	by := w.cluster.present()
	if by == nil {
		return nil, errAbsent
	}
	for _, d := range w.devices {
		s = append(s, section{fmt.Sprint("switch ", int(d.sw)), switchText(d)})
	}
	for _, m := range readMethods() {
		text, err := answerText(ctx, by.env, m)
		if api.KindOf(err) == codes.Unavailable {
			continue // no worker of the plan serves it
		} else if err != nil {
			text = fmt.Sprintf("\terror %v\n", api.KindOf(err))
		}
		s = append(s, section{m.MethodName(), text})
	}
	if w.managed != nil {
		for i := range s {
			s[i].text = w.ungiven(s[i].text)
		}
	}
	return s, nil
}

// switchText returns the entries, groups and meters of a switch, one a line.
func switchText(d *device) string {
	var lines []string
	for _, e := range d.Flows() {
		m := api.NewFlowEntry(d.sw, &e.Entry)
		m.Cookie, m.Dpid = "", "" // of the cookie the owner counts, which it has
		lines = append(lines, "\tentry "+jsonText(m)+"\n")
	}
	for _, g := range d.Groups() {
		lines = append(lines, fmt.Sprintf("\tgroup %+v\n", g))
	}
	for _, m := range d.Meters() {
		lines = append(lines, fmt.Sprintf("\tmeter %+v\n", m))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// readMethods returns the methods that list or get what everybody with the role
// read may see, by name.
func readMethods() (list []weft.Method) {
	for _, m := range api.Methods() {
		service, method, _ := strings.Cut(m.MethodName(), ".")
		r := api.RulesOf(m.MethodName())
		here := !slices.Contains([]string{"gateway", "lab", "experiments"}, service) // of the process, not of the network
		if here && r.GetRole() == api.Role_ROLE_READ && !r.GetChanges() && (strings.HasPrefix(method, "List") || strings.HasPrefix(method, "Get")) {
			list = append(list, m)
		}
	}
	slices.SortFunc(list, func(a, b weft.Method) int { return cmp.Compare(a.MethodName(), b.MethodName()) })
	return list
}

// answerText returns what a method answers to an empty request, one element a
// line, without what counts or measures.
func answerText(ctx context.Context, env *weft.Env, m weft.Method) (string, error) {
	req, _ := m.NewMessages()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	resp, err := weft.CallAny(ctx, env, m, req)
	if err != nil {
		return "", err
	}
	var fields map[string]any
	if err := json.Unmarshal([]byte(jsonText(resp.(proto.Message))), &fields); err != nil {
		panic(err)
	}
	var b strings.Builder
	for _, name := range sorted(fields) {
		list, repeated := fields[name].([]any)
		if !repeated {
			list = []any{fields[name]}
		}
		var lines []string
		if !steady(name) || name == "wanted" && !repeated { // forwarding.GetFlooding has a version of that name
			continue
		}
		for _, e := range list {
			lines = append(lines, fmt.Sprintf("\t%s %s\n", name, plain(e)))
		}
		slices.Sort(lines)
		b.WriteString(strings.Join(lines, ""))
	}
	return b.String(), nil
}

// plain returns a value of JSON as text, without fields that are not steady.
func plain(v any) string {
	var strip func(v any)
	strip = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				strip(e)
			}
		case map[string]any:
			for name, e := range v {
				if strip(e); !steady(name) {
					delete(v, name)
				}
			}
		}
	}
	strip(v)
	text, _ := json.Marshal(v)
	return string(text)
}

// steady reports whether a field is the same for the same state of the network:
// it does not count, measure or name a time or a writer's run.
func steady(name string) bool { return !volatile.MatchString(name) }

var volatile = regexp.MustCompile(`^(.*_(us|per_s|bytes|packets|dropped|seen|ins|outs|mods)|bytes|packets|lookups|matched|interval|since|` +
	`version|committed|cookie|added|kept|removed|beats|missed|moves|flaps|refused|failed|errors|duplicates|shed)$`)

// jsonText returns a message in JSON, the same for equal messages.
func jsonText(m proto.Message) string {
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		panic(err)
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil { // protojson varies its spaces
		panic(err)
	}
	text, _ = json.Marshal(v)
	return string(text)
}
