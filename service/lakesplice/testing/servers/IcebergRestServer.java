// Apache Iceberg's own REST catalog, the one that its tests and those of its clients run, as a
// process: `java IcebergRestServer.java PORT FOLDER TOKEN`. The catalog is a SQLite file in the
// folder, so it outlives the process. Requests need `Authorization: Bearer TOKEN`.

import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;

public class IcebergRestServer {
    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(arguments[0]);
        String folder = arguments[1];
        Catalog catalog = CatalogUtil.buildIcebergCatalog(
            "lakesplice",
            Map.of(
                "catalog-impl", "org.apache.iceberg.jdbc.JdbcCatalog",
                "uri", "jdbc:sqlite:" + folder + "/rest.db",
                "jdbc.schema-version", "V1",
                "warehouse", "file://" + folder
            ),
            new Configuration()
        );
        ServletContextHandler handler = new ServletContextHandler();
        handler.addServlet(new ServletHolder(new Guarded(catalog, arguments[2])), "/*");
        Server server = new Server(new InetSocketAddress("127.0.0.1", port));
        server.setHandler(handler);
        server.start();
        server.join();
    }

    private static class Guarded extends RESTCatalogServlet {
        private final String expected;

        Guarded(Catalog catalog, String token) {
            super(new RESTCatalogAdapter(catalog));
            expected = "Bearer " + token;
        }

        @Override
        protected void service(HttpServletRequest request, HttpServletResponse response)
            throws ServletException, IOException {
            if (expected.equals(request.getHeader("Authorization"))) {
                super.service(request, response);
                return;
            }
            response.setStatus(401);
            response.setContentType("application/json");
            response.getWriter().write(
                "{\"error\": {\"message\": \"wrong token\","
                    + " \"type\": \"NotAuthorizedException\", \"code\": 401}}"
            );
        }
    }
}
