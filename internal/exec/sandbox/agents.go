package sandbox

import (
	"os"
	"path/filepath"
	"strings"

	"pawl/internal/lib/list"
	"pawl/internal/spec/agents"
)

// preference is a file of a home with settings, and what commands get of it.
type preference struct {
	name string // the path that its program knows
	glance
	place Place
}

// preferred returns the settings of a home without credentials: of git's settings the harmless ones, of others the
// whole file or nothing.
func preferred(home string) (prefs []preference) {
	for _, file := range preferences {
		name := filepath.Join(home, file)
		if text, err := os.ReadFile(name); err == nil && !credentials.Match(text) {
			found := now(name)
			prefs = append(prefs, preference{name, found, Place{Path: found.at, Access: Read}})
		}
	}
	for _, file := range []string{".gitconfig", ".config/git/config"} {
		name := filepath.Join(home, file)
		found := now(name)
		text, err := os.ReadFile(found.at)
		if harmless := gitSettings(string(text)); err == nil && harmless != "" {
			prefs = append(prefs, preference{name, found, Place{Path: found.at, Access: Copy, Text: harmless}})
		}
	}
	return prefs
}

// agent adds what a program named in agent.use needs from the user's home: its sign-in, and the few settings without
// which it does not work. Its folders are empty and belong to the loop, so it finds nothing of the user or of other
// loops, and nobody else runs what it puts there.
func (d *draft) agent(r Request, p agents.Program) {
	for _, home := range d.homes {
		for _, folder := range p.Writes {
			path := filepath.Join(home, folder)
			if have := d.find(path); have.at != "" && !d.holds(have.at) {
				d.places, path = append(d.places, have.links...), have.at
			}
			place := Place{Path: path, Access: Empty}
			if len(r.Layers) > 0 {
				place = Place{Path: path, Access: Layer, Missing: true, Upper: filepath.Join(r.Layers[0], strings.ReplaceAll(strings.Trim(path, "/"), "/", "%")+".own")}
			}
			d.places = append(d.places, place)
		}
		for _, s := range p.Settings {
			path := d.find(filepath.Join(home, s.File)).at
			if text, err := os.ReadFile(path); err == nil {
				ours := s.Of(text)
				if r.Metered {
					ours = p.Metering.Public(ours)
				}
				if ours != "" {
					d.places = append(d.places, Place{Path: path, Access: Copy, Text: ours})
					d.names(filepath.Join(home, s.File))
				}
			}
		}
	}
	if !r.Metered {
		d.inHomes(Write, p.SignIn...)
	}
	d.inHomes(Read, p.Reads...)
}

// installed returns the folders that a program installed by npm needs to start: the one with the packages, and the one
// with the link to the program.
func installed(program, path string) []string {
	candidates := []string{program}
	if !strings.Contains(program, "/") {
		candidates = list.Map(filepath.SplitList(path), func(dir string) string { return filepath.Join(dir, program) })
	}
	const packages = "/node_modules"
	for _, link := range candidates {
		target := lately(link).at
		if target == "" {
			continue
		}
		if i := strings.Index(target, packages+"/"); i >= 0 {
			return []string{target[:i+len(packages)], filepath.Dir(link)}
		}
		return nil
	}
	return nil
}
