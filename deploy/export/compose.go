package export

import (
	"cmp"
	"embed"
	"fmt"
	"strconv"
	"strings"
)

//go:embed templates
var templates embed.FS

// composeBus is the URL of the NATS server of the Compose file itself.
const composeBus = "tls://nats:4222"

// Compose returns a Compose file with one container for each process of the
// plan, one that puts the plan into force and, unless the bus is elsewhere, a
// NATS server.
func Compose(c Config) ([]File, error) {
	m, err := newModel(c)
	if err != nil {
		return nil, err
	}
	own := m.BusURL == ""
	m.BusURL = cmp.Or(m.BusURL, composeBus)
	names := m.certificates()
	if own {
		names = append(names, "nats")
	}
	depends, nats, volumes := "", "", ""
	if own {
		depends, nats, volumes = composeDepends, composeNATS, "\n\nvolumes:\n  nats: {}"
	}
	var secrets strings.Builder
	for _, name := range names {
		fmt.Fprintf(&secrets, "\n  %s.crt: {file: ./certs/%[1]s.crt}\n  %[1]s.key: {file: ./certs/%[1]s.key}", name)
	}
	files := []File{
		{"plan.yaml", []byte(m.YAML)},
		fill("docker-compose.yaml", "name", m.Name, "image", m.Image, "nats", nats, "depends", depends, "bus", strconv.Quote(m.BusURL),
			"workers", m.composeWorkers(depends), "volumes", volumes, "certificates", secrets.String()),
	}
	if own {
		files = append(files, fill("nats.conf", "name", m.Name))
	}
	return sorted(files), nil
}

// composeDepends is for what needs the NATS server of the Compose file.
const composeDepends = "\n    depends_on: [nats]"

// composeNATS is the NATS server of the Compose file.
const composeNATS = `
  nats:
    image: ${WEFT_NATS_IMAGE:-nats:2.11}
    command: ["--config", "/etc/nats/weft.conf"]
    restart: unless-stopped
    security_opt: ["no-new-privileges:true"]
    networks: [weft]
    volumes:
      - ./nats.conf:/etc/nats/weft.conf:ro
      - nats:/data
    secrets: [ca.crt, nats.crt, nats.key]`

// composeWorkers returns the services of the workers, a line break before each line.
func (m *model) composeWorkers(depends string) string {
	escaped := func(s string) string { return strconv.Quote(strings.ReplaceAll(s, "$", "$$")) }
	var b lines
	for _, u := range m.Units {
		for i, p := range u.Instances {
			b.add("\n  %s:\n    <<: *weft\n    hostname: %[1]s\n    restart: unless-stopped%s", p.Name, depends)
			b.add("    command:\n      - worker\n      - --process=%s\n      - --bus=%s\n      - --certs=/run/secrets\n      - --listen=%[1]s:%[3]d", p.Name, m.BusURL, workerPort)
			for _, set := range u.Set {
				b.add("      - %s", escaped("--set="+set))
			}
			gateway := ""
			if u.Gateway {
				gateway = ", gateway.token"
				b.add("      - --set=gateway.token_file=/run/secrets/gateway.token")
			}
			if len(u.Variables) > 0 {
				b.add("    environment:")
			}
			for _, v := range u.Variables {
				b.add("      %s: %s", v.Name, escaped(v.Value))
			}
			if u.Memory != 0 {
				b.add("    mem_limit: %d", u.Memory)
			}
			if u.CPUs != "" {
				b.add("    cpuset: %q", u.CPUs)
			}
			if u.CPUQuota != 0 {
				b.add("    cpus: %q", u.CPULimit)
			}
			if len(u.Ports) > 0 && i == 0 {
				b.add("    ports:")
				for _, port := range u.Ports {
					b.add("      - \"${WEFT_ADDRESS:-127.0.0.1}:%d:%d\" # %s", port.Host, port.Number, port.Name)
				}
			}
			b.add("    secrets: [ca.crt, %s.crt, %[1]s.key%s]", p.Name, gateway)
		}
	}
	return b.String()
}

// fill returns a file of the package's templates with its marks replaced: each [[NAME]] by what
// follows the name. What starts with a line break follows in further lines.
//
// text/template would do it, too; but the linker keeps all methods of all types in a program
// that has it, of weft 13 MB.
func fill(name string, values ...string) File {
	text, err := templates.ReadFile("templates/" + name + ".tmpl")
	if err != nil {
		panic(err) // it is embedded
	}
	for i := 0; i < len(values); i += 2 {
		values[i] = "[[" + values[i] + "]]"
	}
	return File{name, []byte(strings.NewReplacer(values...).Replace(string(text)))}
}

// lines is text with a line break before each line.
type lines struct{ strings.Builder }

func (l *lines) add(format string, args ...any) { fmt.Fprintf(l, "\n"+format, args...) }
