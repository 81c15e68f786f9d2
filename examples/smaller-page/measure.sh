echo "METRIC bytes=$(cat src/*.html | wc -c)"
