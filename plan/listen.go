package plan

import (
	"net"
	"reflect"
	"slices"
	"strings"

	"github.com/weft-sdn/weft"

	"github.com/weft-sdn/weft/internal/document"
)

// address is an address to listen at.
type address struct {
	text    string
	unix    bool
	host    string // with localhost as 127.0.0.1
	port    string
	machine string
}

// parseAddress reads HOST:PORT, tcp:HOST:PORT or unix:PATH; it returns false
// for other forms, which other checks report.
func parseAddress(s, machine string) (address, bool) {
	a := address{text: s, machine: machine}
	if strings.HasPrefix(s, "unix:") {
		a.unix = true
		return a, true
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		_, rest, _ := strings.Cut(s, ":")
		if host, port, err = net.SplitHostPort(rest); err != nil {
			return a, false
		}
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	a.host, a.port = host, port
	return a, true
}

// fixed reports whether only one listener can use the address.
func (a address) fixed() bool { return a.unix || a.port != "0" && a.port != "" }

func (a address) wildcard() bool { return a.host == "" || a.host == "0.0.0.0" || a.host == "::" }

// clashes reports whether two listeners cannot use both addresses.
func (a address) clashes(b address) bool {
	switch {
	case a.machine != b.machine || !a.fixed() || !b.fixed() || a.unix != b.unix:
		return false
	case a.unix:
		return a.text == b.text
	}
	return a.port == b.port && (a.host == b.host || a.wildcard() || b.wildcard())
}

// listening checks that no two listeners have the same address: workers, and
// services with a key listen in their settings.
func (f *fit) listening() {
	type use struct {
		address
		who string
	}
	var taken []use
	take := func(path, who string, a address) {
		for _, t := range taken {
			if a.clashes(t.address) {
				f.fail(path, "%s: listens at %s, where %s listens, too; give each an address of its own", path, a.text, t.who)
				return
			}
		}
		taken = append(taken, use{a, who})
	}
	for i := range f.plan.Workers {
		w := &f.plan.Workers[i]
		path := "workers." + w.Name
		if a, ok := parseAddress(w.Listen, w.Machine); ok {
			take(path+".listen", "worker "+w.Name, a)
		}
		for _, name := range w.Services {
			s := specOf(f.specs, name)
			if s == nil {
				continue
			}
			at := f.plan.listens(w, s, "listen")
			f.standbyListens(w, s, at, func(path, text string) {
				if a, ok := parseAddress(text, w.Machine); ok {
					take(path, name+" of worker "+w.Name+" (standing by)", a)
				}
			})
			if s.Beside != nil && len(at) == 0 && !f.receives(w) {
				f.fail(path+".services."+name, "%s.services: %s takes packets straight from switches, but listens nowhere; set %s.settings.%s.listen, such as [\"tcp:127.0.0.1:6663\"], and have switches connect there, too, or take it out", path, name, path, name)
			}
			for _, text := range at {
				a, ok := parseAddress(text, w.Machine)
				settings := path + ".settings." + name + ".listen"
				switch {
				case !ok:
				case w.mostReplicas() > 1 && s.Scale != weft.Any: // another check reports wrong replicas
				case a.fixed() && w.mostReplicas() > 1:
					f.fail(path+".replicas", "%s.replicas: %d, but %s is in it and listens at %s, where only one can; set %s to port 0, or move %s to a worker without replicas", path, w.mostReplicas(), name, text, settings, name)
				default:
					take(settings, name+" of worker "+w.Name, a)
				}
			}
		}
	}
}

// receives reports whether a worker holds switches' sessions. A service beside
// them has nothing to do there.
func (f *fit) receives(w *Worker) bool {
	return slices.ContainsFunc(w.Services, func(name string) bool { s := specOf(f.specs, name); return s != nil && s.Pipeline })
}

// listens returns the values of a service's key listen, or of a similar key, in
// a worker.
func (p *Plan) listens(w *Worker, s *weft.Spec, key string) []string {
	list := defaultListens(s.Config, key)
	for _, section := range p.SettingsOf(w.Name) {
		v, err := section.tree()
		if section.Service != s.Name || err != nil {
			continue
		}
		for _, e := range v.Entries {
			switch {
			case e.Key != key:
			case e.Value.Kind == document.Word:
				list = []string{e.Value.Text}
			case e.Value.Kind == document.Mapping || e.Value.Kind == document.Null || e.Value.Kind == document.Plain:
			default:
				list = nil
				for _, item := range e.Value.Items {
					list = append(list, item.Text)
				}
			}
		}
	}
	return list
}

// defaultListens returns the default of such a key of a configuration.
func defaultListens(config weft.Config, wanted string) []string {
	v := reflect.Indirect(reflect.ValueOf(config))
	if v.Kind() != reflect.Struct {
		return nil
	}
	for i := range v.NumField() {
		key, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		if key != wanted || !v.Type().Field(i).IsExported() {
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
