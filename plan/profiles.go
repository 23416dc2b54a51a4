package plan

import "embed"

//go:embed profiles/default.yaml
var profiles embed.FS

// DefaultProfile returns the profile that is built in: measured, as its head
// says, with simulated switches, for plans of controllers that nobody has
// measured yet.
func DefaultProfile() (*Profile, error) {
	const name = "profiles/default.yaml"
	text, err := profiles.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return ParseProfile(name, text)
}
