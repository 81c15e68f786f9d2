// Stands for Google's module of this name (decision 26). The versions of what it imports are pawl's own.
module google.golang.org/api

go 1.26
