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
func preferred(home string) (all []preference) {
	for _, file := range preferences {
		name := filepath.Join(home, file)
		if text, err := os.ReadFile(name); err == nil && !credentials.Match(text) {
			is := now(name)
			all = append(all, preference{name, is, Place{Path: is.at, Access: Read}})
		}
	}
	for _, file := range []string{".gitconfig", ".config/git/config"} {
		name := filepath.Join(home, file)
		is := now(name)
		text, err := os.ReadFile(is.at)
		if harmless := gitSettings(string(text)); err == nil && harmless != "" {
			all = append(all, preference{name, is, Place{Path: is.at, Access: Copy, Text: harmless}})
		}
	}
	return all
}

// agent adds what a program named in agent.use needs from the user's home: its sign-in, and the few settings without
// which it does not work. Its folders are empty and belong to the loop, so it finds nothing of the user or of other
// loops, and nobody else runs what it puts there.
func (d *draft) agent(r Request, p agents.Program) {
	for _, home := range d.homes {
		for _, folder := range p.Writes {
			at := filepath.Join(home, folder)
			if have := d.find(at); have.at != "" && !d.holds(have.at) {
				d.places, at = append(d.places, have.links...), have.at
			}
			place := Place{Path: at, Access: Empty}
			if len(r.Layers) > 0 {
				place = Place{Path: at, Access: Layer, Missing: true, Upper: filepath.Join(r.Layers[0], strings.ReplaceAll(strings.Trim(at, "/"), "/", "%")+".own")}
			}
			d.places = append(d.places, place)
		}
		for _, s := range p.Settings {
			at := d.find(filepath.Join(home, s.File)).at
			if text, err := os.ReadFile(at); err == nil {
				own := s.Of(text)
				if r.Metered {
					own = p.Metering.Public(own)
				}
				if own != "" {
					d.places = append(d.places, Place{Path: at, Access: Copy, Text: own})
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
