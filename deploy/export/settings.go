package export

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/internal/document"
	"github.com/weft-sdn/weft/plan"
)

// gatewayName is the service that clients talk to, which wants a token from
// them in containers.
const gatewayName = "gateway"

// openflowPort is the name of the ports at which switches connect.
const openflowPort = "openflow"

// settings are the keys that a plan sets of one service in one worker.
type settings struct {
	service string
	keys    map[string]document.Value
}

// settingsOf reads what the plan sets, the worker's own last.
func settingsOf(p *plan.Plan, worker string, s *weft.Spec) (settings, error) {
	all := settings{s.Name, map[string]document.Value{}}
	for _, section := range p.SettingsOf(worker) {
		if section.Service != s.Name {
			continue
		}
		keys, err := section.Keys()
		if err != nil {
			return all, err
		}
		maps.Copy(all.keys, keys)
	}
	return all, nil
}

// secret reports a secret among the settings: files of an export are passed
// on and checked in.
func (s settings) secret() error {
	if token, has := s.keys["token"]; has && token.Flow() != `""` {
		return fmt.Errorf("%s.token is a secret, and would be readable in what is exported; take it out of the plan: containers get a token of their own from a file or Secret", s.service)
	}
	for key, value := range s.keys {
		// Settings hold the file names of certificates' keys, not the keys.
		if text := value.Flow(); plan.IsSecret(key) && text != `""` && !strings.ContainsAny(text, "/.") {
			return fmt.Errorf("%s.%s is a secret, and would be readable in what is exported; take it out of the plan", s.service, key)
		}
	}
	return nil
}

// listens returns the addresses under the key listen, as set or by default.
func (s settings) listens(spec *weft.Spec) (list []string, byDefault []string) {
	byDefault = defaultListens(spec.Config)
	switch v := s.keys["listen"]; v.Kind {
	case document.Word:
		return []string{v.Text}, byDefault
	case document.List:
		for _, item := range v.Items {
			list = append(list, item.Text)
		}
		return list, byDefault
	}
	return byDefault, byDefault
}

// defaultListens returns what the key listen of a configuration is by default.
func defaultListens(config weft.Config) []string {
	v := reflect.Indirect(reflect.ValueOf(config))
	if v.Kind() != reflect.Struct {
		return nil
	}
	for i := range v.NumField() {
		if key, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ","); key != "listen" {
			continue
		}
		switch x := v.Field(i).Interface().(type) {
		case string:
			return []string{x}
		case []string:
			return x
		}
	}
	return nil
}

// hasKey reports whether a configuration has a key.
func hasKey(config weft.Config, key string) bool {
	v := reflect.Indirect(reflect.ValueOf(config))
	if v.Kind() != reflect.Struct {
		return false
	}
	for i := range v.NumField() {
		if name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ","); name == key {
			return true
		}
	}
	return false
}

// listen makes a service of the unit listen at all addresses of its container,
// at the ports of the plan.
func (u *unit) listen(spec *weft.Spec, s settings) error {
	list, byDefault := s.listens(spec)
	if len(list) == 0 || len(list) == 1 && list[0] == "" {
		return nil // it does not listen
	}
	if len(byDefault) == 0 { // it does where the plan says so, as an intake
		byDefault = list
	}
	several := strings.HasPrefix(byDefault[0], "tcp:") || strings.HasPrefix(byDefault[0], "unix:")
	var addresses []string
	networks := []string{} // of the addresses
	for i, text := range list {
		if strings.HasPrefix(text, "unix:") {
			continue // a file that nobody outside the container sees
		}
		number, err := portOf(text)
		if err == nil && number == 0 {
			number, err = portOf(byDefault[min(i, len(byDefault)-1)])
		}
		if err != nil {
			return fmt.Errorf("%s.listen: %q: want HOST:PORT", spec.Name, text)
		}
		name := spec.Name
		if spec.Pipeline {
			name = openflowPort
		}
		if spec.Beside != nil { // switches connect there, too
			name = openflowPort + "-in"
		}
		if len(addresses) > 0 {
			name += "-" + strconv.Itoa(len(addresses)+1)
		}
		u.Ports = append(u.Ports, port{Name: name, Service: spec.Name, Number: number})
		addresses = append(addresses, "0.0.0.0:"+strconv.Itoa(number))
		networks = append(networks, "tcp:")
		if strings.HasPrefix(text, "tls:") {
			networks[len(networks)-1] = "tls:"
		}
	}
	if len(addresses) == 0 {
		return fmt.Errorf("%s.listen: only sockets in the file system, which nobody outside a container sees; add an address such as %s", spec.Name, byDefault[0])
	}
	value := addresses[0]
	if several {
		for i := range addresses {
			addresses[i] = networks[i] + addresses[i]
		}
		b, err := json.Marshal(addresses)
		if err != nil {
			return err
		}
		value = string(b)
	}
	u.Set = append(u.Set, spec.Name+".listen="+value)
	if several && slices.Contains(networks, "tcp:") && hasKey(spec.Config, "plain") {
		u.Set = append(u.Set, spec.Name+".plain=true") // the plan has TCP without TLS
	}
	return nil
}

// portOf returns the port of HOST:PORT or tcp:HOST:PORT.
func portOf(address string) (int, error) {
	_, text, err := net.SplitHostPort(strings.TrimPrefix(strings.TrimPrefix(address, "tcp:"), "tls:"))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}

// cpuLimit returns how many processors, or what share of one, a process of a
// worker may use; empty if it is not limited.
func cpuLimit(w *plan.Worker) string {
	limit := float64(cpuCount(w.CPUs))
	if limit == 0 || w.CPUQuota > 0 && w.CPUQuota < limit {
		limit = w.CPUQuota
	}
	if limit == 0 {
		return ""
	}
	return strconv.FormatFloat(limit, 'f', -1, 64)
}

// cpuCount returns how many CPUs a list such as 0,2-3 has.
func cpuCount(list string) int {
	count := 0
	for part := range strings.SplitSeq(list, ",") {
		first, last, _ := strings.Cut(strings.TrimSpace(part), "-")
		from, err := strconv.Atoi(first)
		if err != nil {
			continue // the plan has been checked; empty is no list
		}
		to, err := strconv.Atoi(cmp.Or(last, first))
		if err == nil {
			count += to - from + 1
		}
	}
	return count
}

func keys(m map[string]string) iter.Seq[string] { return maps.Keys(m) }
